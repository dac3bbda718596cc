"""Fits, calibration and forecasts: numbers in, frozen dataclasses out; no HTTP, no SQL, no clock."""
