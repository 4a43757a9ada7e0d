"""Data parallelism: one step of a computation over a batch, by several devices at once.

train = data_parallel(step, devices=devices(4), update=update)
model = train.replicate(parameters)
for batch in batches:
    loss = train(model, *batch)
parameters = model.parameters()
"""

from .batches import DataParallel, data_parallel, devices
from .replicas import Replicated

__all__ = ["DataParallel", "Replicated", "data_parallel", "devices"]
