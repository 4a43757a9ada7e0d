KERNELS: dict = {}
