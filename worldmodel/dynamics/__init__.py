"""From embeddings and actions to the next embeddings."""
