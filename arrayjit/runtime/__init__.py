"""From Code to results: devices, memory, streams, and a driver for each kind of hardware."""
