"""The main job, shown on real data: plain NumPy functions, jitted and measured beside NumPy itself.

`python -m arrayjit demo` runs it. `pictures` and `network` hold what a user would write, `measure` the
timing, `report` the table and the pictures.
"""
