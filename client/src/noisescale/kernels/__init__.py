"""Reductions over lists of gradients: plain PyTorch, and Triton kernels where they are there."""
