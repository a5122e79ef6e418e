"""Calibration: experiments on this machine, and the factors of costs that follow from them."""
