"""The noisescale server."""
