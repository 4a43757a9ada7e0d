import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def hypotenuse(x, y):
    return jnp.sqrt(x * x + y * y)


print(hypotenuse(np.arange(16.0), np.ones(16)).sum())
