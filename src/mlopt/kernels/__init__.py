"""Kernels of linear models and of text: arrays in, arrays out, the GIL released."""
