"""Python function -> Computation."""
