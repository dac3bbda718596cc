"""Devices: how a batch divides among them, rounding to what fits, and spot prices."""
