"""Symbolic arrays and numbers, and what is computed cell by cell."""
