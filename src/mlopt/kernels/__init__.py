"""Kernels of linear models: arrays in, arrays out, the GIL released."""
