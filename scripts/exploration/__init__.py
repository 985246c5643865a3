"""What `benchmark.py` compares."""
