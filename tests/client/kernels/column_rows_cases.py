"""Rows of squared norms by a kernel, of models that give another set of parameters a gradient each time."""

import random

import torch

from noisescale.capture.sums import row_sums
from noisescale.capture.sums.row_sums import ColumnRows

SIZES = (700, 3, 41, 300, 5000)
GROUPS, NUM_GROUPS = (0, 0, 1, 1, -1), 2

CASES = ("few sets", "more sets than are kept", "more sets, of two types", "more sets, one sparse")


def check(name: str, device: str) -> dict[str, float]:
    """How far off the rows of twenty random sets are, and how many layouts are kept."""
    row_sums.MOST_SETS = 32 if name == "few sets" else 3
    torch.manual_seed(0)
    parameters = [torch.randn(size, device=device) for size in SIZES]
    rows, choose, worst = ColumnRows(parameters, GROUPS, NUM_GROUPS), random.Random(0), 0.0
    for number in range(20):
        indices = sorted(choose.sample(range(len(SIZES)), choose.randint(1, len(SIZES))))
        gradients = [torch.randn(SIZES[index], device=device) for index in indices]
        if "two types" in name:
            gradients[0] = gradients[0].double() if number % 2 else gradients[0].bfloat16()
        exact = [float(gradient.double().square().sum()) for gradient in gradients]
        if "sparse" in name:
            gradients[0] = gradients[0].to_sparse()
        expected = [
            *(sum(e for e, i in zip(exact, indices, strict=True) if GROUPS[i] == g) for g in range(NUM_GROUPS)),
            sum(exact),
        ]
        found = rows.row([rows.part(indices, gradients)]).tolist()
        assert len(found) == len(expected)
        worst = max(worst, *(abs(f - e) / max(e, 1e-30) for f, e in zip(found, expected, strict=True)))
    return {"error": worst, "layouts": len(rows._lists)}
