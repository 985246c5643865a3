"""How well an embedding identifies the true state."""
