"""The noisescale dashboard."""
