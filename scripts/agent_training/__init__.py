"""What `train_agent.py` compares."""
