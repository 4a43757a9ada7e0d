"""Arrays that live in the memory of devices, as users see them."""
