"""Profiles of calls on GPUs: each kernel's time by CUDA's events, what it takes of a multiprocessor, and how
near it is to what the GPU can do."""
