"""What `identify.py` studies."""
