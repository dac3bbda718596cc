"""The small batches of a step: their gradients, their sizes and the sums of their squared norms."""
