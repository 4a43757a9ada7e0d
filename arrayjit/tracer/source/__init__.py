"""The source of the user's functions, where it must be written otherwise to be traced."""
