"""What `doctor.py` tries."""
