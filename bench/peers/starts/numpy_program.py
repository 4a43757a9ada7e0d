import numpy as np


def hypotenuse(x, y):
    return np.sqrt(x * x + y * y)


print(hypotenuse(np.arange(16.0), np.ones(16)).sum())
