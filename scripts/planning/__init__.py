"""What `plan.py` does with an encoder."""
