"""Worlds whose latents are known, to test theorems on."""
