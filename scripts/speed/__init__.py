"""What `bench.py` measures."""
