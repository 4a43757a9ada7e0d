"""Python's loops, and conditions out of arrays."""
