"""Gradients of a normalisation layer, and for nothing extra the squared norm of each example's own."""
