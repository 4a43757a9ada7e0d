"""Computations timed side by side: arrayjit and what users would pick instead, each checked against NumPy
first.

`tasks` are what is computed, `results` what was measured. `timing` holds a contest, over `checking`; `runs`
holds many, in processes of their own (`worker`), whose `journal` outlives them. `standings` are what the
numbers come to, shown by `tables`, `pages` and `report`.
"""
