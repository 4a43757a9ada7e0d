"""Calls without Python: the function that a jitted function is called through, and what it reads."""
