"""Whether the first dimension of a layer's input counts examples, or positions of examples in a row.

`x.view(-1, features)` turns [B, T, features] into B T rows, those of an example adjacent: then the layer can be
measured. Other tensors with B T rows (time first, tokens sorted by expert) look the same, so what is not proved is
refused.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn

# B examples, L rows

OF_WEIGHTS = {
    "AddmmBackward0": (0, 2),
    "ConvolutionBackward0": (1, 2),
    "EmbeddingBackward0": (0,),
    "FusedRmsNormBackward0": (1,),
    "MmBackward0": (1,),
    "NativeGroupNormBackward0": (1, 2),
    "NativeLayerNormBackward0": (1, 2),
}
"""Operands that every example meets alike."""

VIEWS = (
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "UnsafeViewBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
)

LEAVING_OUT = ("SelectBackward0", "UnbindBackward0")

SPREADING = ("AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0", "ExpandBackward0", "RepeatBackward0")
"""Steps that may spread an operand over the others."""

ADDING_UP = ("MeanBackward1", "SumBackward1")

MOVING = ("TransposeBackward0", "PermuteBackward0", "StackBackward0", *LEAVING_OUT, *ADDING_UP)

LOOKUP = "EmbeddingBackward0"

FRONT, GONE = 1, -1
"""Elements before the examples: of a step whose result has them first, and of one where nobody knows."""

Shape = tuple[int, ...]

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


# Whether the examples are still in the first dimension, where another dimension is as long.
#
# `x.transpose(0, 1)` of [B, T, features] with B = T looks as before: layers behind it would take positions for
# examples. So the autograd graph is followed back to the data, and where the examples are is worked out step by step.
# The place is kept as the number of elements of all dimensions before it: a reshape leaves that as it is. Where a step
# is not known to keep or move it, the examples count as gone from the front.


class Turns:
    """What is known of the steps of one forward; to be cleared with it, as it holds them.

    Attributes:
        is_data_turned: The data came turned: nothing that follows is sure.
    """

    def __init__(self) -> None:
        self._known: dict[Any, frozenset[int]] = {}
        self.is_data_turned = False

    def clear(self) -> None:
        """Forget the forward."""
        self._known.clear()

    def has_turned(self, node: Any) -> bool:
        """Whether the first dimension of a step's result may be another one than the data's.

        Args:
            node: The step; None: the data itself.
        """
        if node is None:
            return self.is_data_turned
        to_see = [node]
        while to_see:
            step = to_see[-1]
            unknown = [before for before, _ in _data_before(step) if before is not None and before not in self._known]
            if step in self._known or not unknown:
                to_see.pop()
                self._known.setdefault(step, self._of(step))
            else:
                to_see += unknown
        return any(place != FRONT for place in self._known[node])

    def _of(self, step: Any) -> frozenset[int]:
        data = GONE if self.is_data_turned else FRONT
        if hasattr(step, "variable"):
            return frozenset() if isinstance(step.variable, nn.Parameter) else frozenset({data})
        if step.name() == LOOKUP:
            return frozenset({data})
        result = _shape(step, 0)
        found: set[int] = set()
        of_spread: set[int] = set()
        for before, output_nr in _data_before(step):
            operand = result if before is None else _shape(before, output_nr)
            places = {data} if before is None else self._known[before]
            is_spread = step.name() in SPREADING and is_without_front(operand, result)
            (of_spread if is_spread else found).update(_moved(step, place, operand, result) for place in places)
        return frozenset(found or of_spread)


def is_without_front(operand: Sequence[int], result: Sequence[int]) -> bool:
    """Whether an operand is spread over the first dimension of the result, and has none of its own there."""
    return len(operand) < len(result) or (len(operand) == len(result) and bool(result) and operand[0] == 1 != result[0])


def _data_before(step: Any) -> Iterator[tuple[Any, int]]:
    weights = OF_WEIGHTS.get(step.name(), ())
    return (edge for place, edge in enumerate(step.next_functions) if place not in weights)


def _moved(step: Any, place: int, operand: Shape, result: Shape) -> int:
    """Elements before the examples in the result of a step, from those in an operand."""
    kind = step.name()
    if place == GONE or kind in VIEWS:
        return place
    dims = [dim for dim, size in enumerate(operand) if size > 1 and math.prod(operand[:dim]) == place]
    if not dims:
        # Inside of a dimension that several were made one of: where it stays, so do they.
        inside = sum(math.prod(operand[: dim + 1]) <= place for dim in range(len(operand)))
        is_kept = kind not in MOVING and operand[: inside + 1] == result[: inside + 1]
        return place if is_kept or place == FRONT else GONE
    dim = _dim_in_result(step, kind, dims[0], operand, result)
    return GONE if dim is None else math.prod(result[:dim])


def _dim_in_result(step: Any, kind: str, dim: int, operand: Shape, result: Shape) -> int | None:
    if kind == "TransposeBackward0":
        pair = [_counted(step._saved_dim0, operand), _counted(step._saved_dim1, operand)]
        return pair[1 - pair.index(dim)] if dim in pair else dim
    if kind == "PermuteBackward0":
        return [_counted(moved, operand) for moved in step._saved_dims].index(dim)
    if kind in LEAVING_OUT:
        left_out = _counted(step._saved_dim, operand)
        return None if left_out == dim else dim - (left_out < dim)
    if kind in ADDING_UP:
        added_up = [_counted(of_one, operand) for of_one in step._saved_dim]
        return None if dim in added_up else dim - (0 if step._saved_keepdim else sum(d < dim for d in added_up))
    if kind == "StackBackward0":
        return dim + (_counted(step._saved_dim, result) <= dim)
    if len(operand) == len(result):
        return dim
    # Spread from the left, or a step of its own: those of layers keep what is in front there.
    return dim + len(result) - len(operand) if len(operand) < len(result) and dim else (0 if dim == 0 else None)


def _counted(dim: int, shape: Sequence[int]) -> int:
    """A dimension that may be counted from the end, or be a negative number read as one without a sign."""
    return (dim - 2**64 if dim >= 2**63 else dim) % len(shape)


def _shape(step: Any, output_nr: int) -> Shape:
    return tuple(step._input_metadata[output_nr].shape)


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
