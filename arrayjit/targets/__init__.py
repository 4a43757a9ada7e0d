"""From a Kernel to Code."""
