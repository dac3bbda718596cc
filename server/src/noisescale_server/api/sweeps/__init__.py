"""HTTP for sweeps: steps to a target against batch size and learning rate."""
