"""Gradient noise scale inside your training job."""
