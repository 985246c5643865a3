"""From frames to embeddings: networks, objectives, training."""
