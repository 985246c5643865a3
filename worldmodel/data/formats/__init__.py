"""Readers and writers of other projects' recordings."""
