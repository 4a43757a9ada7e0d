"""Passes that say in which order, how many at once, and by whom iterations are taken."""
