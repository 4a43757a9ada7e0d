"""What derived ops are, as arithmetic on few others."""
