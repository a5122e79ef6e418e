"""Calibration: experiments on this machine, and what follows for the costs."""
