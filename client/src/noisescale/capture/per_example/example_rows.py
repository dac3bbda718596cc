"""Whether the first dimension of a layer's input counts examples, or positions of examples in a row.

`x.view(-1, features)` turns [B, T, features] into B T rows, those of an example adjacent: then the layer can be
measured. Other tensors with B T rows (time first, tokens sorted by expert) look the same, so what is not proved is
refused.
"""

# B examples, L rows

from collections.abc import Sequence
from typing import Any

from torch import Tensor

RESHAPING = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")

INPUT_OF_ROWWISE_STEP = {
    "AddmmBackward0": 1,
    "MmBackward0": 0,
    "NativeLayerNormBackward0": 0,
    "MulBackward0": 0,
    "NativeDropoutBackward0": 0,
    "CloneBackward0": 0,
    "ToCopyBackward0": 0,
    "ReluBackward0": 0,
    "GeluBackward0": 0,
    "SiluBackward0": 0,
    "TanhBackward0": 0,
    "SigmoidBackward0": 0,
    "LeakyReluBackward0": 0,
    "EluBackward0": 0,
    "MishBackward0": 0,
    "SoftplusBackward0": 0,
    "HardswishBackward0": 0,
    "HardtanhBackward0": 0,
}
"""Steps of the autograd graph that leave rows where they are, and which of their inputs holds the rows."""

LONGEST_CHAIN = 64

IN_ORDER = "noisescale: examples whose rows are in order"
"""Key of a note on the autograd graph, which dies with it."""


def rows_an_example(rows: Tensor, num_examples: int) -> int | None:
    """How many adjacent rows of the first dimension are one example; None where that cannot be told.

    Args:
        rows: A layer's input with its autograd history, [L, ...].
        num_examples: B of the forward pass.
    """
    num_rows = rows.shape[0]
    if num_rows == num_examples:
        return 1
    if num_examples == 0 or num_rows % num_examples:
        return None
    is_proved = _is_flat_view(rows, num_examples) or _is_flattened_in_graph(rows, num_examples)
    return num_rows // num_examples if is_proved else None


def note_rows_in_order(output: Tensor, num_examples: int) -> None:
    """Say of a layer's output that each example is adjacent rows of its first dimension, as they were in its input."""
    if output.grad_fn is not None and output.shape[0] != num_examples:
        node: Any = output.grad_fn
        node.metadata[IN_ORDER] = num_examples


def _is_flat_view(rows: Tensor, num_examples: int) -> bool:
    """A view, in the order of memory, of the whole of a tensor [B, ...]."""
    base = rows._base
    return (
        base is not None
        and base.dim() > 0
        and base.shape[0] == num_examples
        and base.is_contiguous()
        and rows.is_contiguous()
        and base.numel() == rows.numel()
    )


def _is_flattened_in_graph(rows: Tensor, num_examples: int) -> bool:
    """Follows the autograd graph back, row by row, to where [B, ...] was reshaped."""
    node: Any = rows.grad_fn
    for _ in range(LONGEST_CHAIN):
        if node is None:
            return False
        name = node.name()
        if node.metadata.get(IN_ORDER) == num_examples:
            return True
        if name in RESHAPING:
            sizes: Sequence[int] = node._saved_self_sym_sizes
            if sizes and sizes[0] == num_examples:
                return True  # a reshape keeps the order of elements, so each example became adjacent rows
            if not sizes or sizes[0] != rows.shape[0]:
                return False
            node = node.next_functions[0][0]
        elif name in INPUT_OF_ROWWISE_STEP:
            node = node.next_functions[INPUT_OF_ROWWISE_STEP[name]][0]
        else:
            return False
    return False
