"""NVIDIA's GPUs, real and simulated."""
