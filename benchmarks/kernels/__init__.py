"""How fast and how exact sums over gradients are, beside PyTorch's own and a read-only pass over memory."""
