"""Pure theory of large-batch training: from a noise scale to efficiencies, trade-offs and learning rates."""
