"""NumPy's functions on symbolic arrays."""
