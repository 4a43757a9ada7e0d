"""The names that the traced function sees."""
