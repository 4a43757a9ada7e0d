"""Sums of products, for rows and columns, by registers and caches."""
