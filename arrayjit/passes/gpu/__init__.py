"""Passes for GPUs: a program as launches of many threads (decision 27)."""
