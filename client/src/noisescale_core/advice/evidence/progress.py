"""How much of its plan a run has done, where nobody has said a plan."""

UNKNOWN_PROGRESS = 0.25
"""Stands for the progress of a run without a plan."""
