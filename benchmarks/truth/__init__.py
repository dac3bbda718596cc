"""Estimators of the noise scale, ours and those of others, against exact truth on the same gradients."""
