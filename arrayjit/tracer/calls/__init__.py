"""From a call of a jitted function to a Computation, and back to results."""
