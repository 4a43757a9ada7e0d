import numexpr
import numpy as np

x, y = np.arange(16.0), np.ones(16)
print(numexpr.evaluate("sqrt(x * x + y * y)").sum())
