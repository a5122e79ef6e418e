"""Predictions for many files, or for one that does not fit into memory."""
