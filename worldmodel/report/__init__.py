"""Figures, films and tables."""
