"""From a Computation to a good Kernel: pure functions, in the order of `pipeline`."""
