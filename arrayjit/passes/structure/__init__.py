"""Passes over whole assignments and nests: which there are, and what lies in memory between them."""
