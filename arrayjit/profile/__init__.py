"""What a function costs and how far from this machine's limits it runs: `lowered.cost()`, `f.profile(...)`,
and `python -m arrayjit profile` and `doctor`."""
