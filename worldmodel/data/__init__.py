"""Episodes, on disk and in memory."""
