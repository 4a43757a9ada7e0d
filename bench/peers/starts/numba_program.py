import numpy as np
from numba import njit


@njit(cache=True)
def hypotenuse(x, y):
    return np.sqrt(x * x + y * y)


print(hypotenuse(np.arange(16.0), np.ones(16)).sum())
