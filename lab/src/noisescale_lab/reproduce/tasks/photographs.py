"""scikit-learn's two sample photographs in grey, standardised together."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor


@cache
def load() -> Tensor:
    """Grey values with mean 0 and standard deviation 1, [photographs, rows, columns]."""
    images = load_sample_images().images  # type: ignore[no-untyped-call]  # scikit-learn ships no types
    grey = torch.tensor(np.stack([image.mean(2) for image in images]), dtype=torch.float32)
    return (grey - grey.mean()) / grey.std()
