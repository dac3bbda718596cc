"""scikit-learn's 1797 handwritten digits of 8 × 8 pixels."""

from functools import cache

import torch
from sklearn.datasets import load_digits
from torch import Tensor


@cache
def load() -> tuple[Tensor, Tensor]:
    """Pixels in [0, 1], [N, 64], and labels, [N]."""
    digits = load_digits()
    return torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
