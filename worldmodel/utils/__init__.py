"""Files, stages, workers and what else every part stands on."""
