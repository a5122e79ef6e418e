"""Rows of any type in blocks: arrays, CSR, data frames, documents."""
