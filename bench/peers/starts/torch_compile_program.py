import numpy as np
import torch


@torch.compile
def hypotenuse(x, y):
    return torch.sqrt(x * x + y * y)


print(hypotenuse(torch.from_numpy(np.arange(16.0)), torch.ones(16)).sum().item())
