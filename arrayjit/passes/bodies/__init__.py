"""Passes over what an iteration computes."""
