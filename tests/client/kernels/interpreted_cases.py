"""What all kernels give where Triton interprets them, as JSON: importing torch takes as long as their quick cases.

TRITON_INTERPRET=1 python interpreted_cases.py '{"multi_tensor": ["fp32"], "layer_norm": ["rows are examples"]}'
"""

import json
import sys
from collections.abc import Callable, Mapping

import torch

from client.kernels import (
    column_rows_cases,
    layer_norm_cases,
    metric_cases,
    multi_tensor_cases,
    outer_products_cases,
    tuned_cases,
)
from noisescale.kernels.preference import PREFERENCE


def with_triton(check: Callable[[str, str], object], name: str) -> object:
    """A case of what asks for kernels by the preference of the process."""
    PREFERENCE.kernels, before = "triton", PREFERENCE.kernels
    try:
        return check(name, "cpu")
    finally:
        PREFERENCE.kernels = before


CHECKS: Mapping[str, Callable[[str], object]] = {
    "multi_tensor": lambda name: multi_tensor_cases.check(name, "triton", "cpu"),
    "tuned": tuned_cases.check,
    "column_rows": lambda name: with_triton(column_rows_cases.check, name),
    "metric": lambda name: metric_cases.check_any(name, "cpu"),
    "layer_norm": lambda name: layer_norm_cases.check_on_cpu(name),
    "outer_products": lambda name: outer_products_cases.check(name, "cpu"),
}
"""By kernel, what is looked at in a case."""


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = json.loads(sys.argv[1])
    print(json.dumps({kernel: {name: CHECKS[kernel](name) for name in names} for kernel, names in asked.items()}))
