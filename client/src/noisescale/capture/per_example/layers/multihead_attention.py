"""MultiheadAttention, and so nn.Transformer's layers: projections are linear maps that it has computed by a function.

No layer is called for them, so each projection is looked for in the autograd graph of the attention's own call: there a
product or a sum has the weight, or the bias, behind one of its edges. Inside, positions come first and examples second,
also with `batch_first=True`. The query's, key's and value's projections may be parts of one weight.
"""

# B examples, T positions, I in_features, O out_features of the whole weight, o of a part of it

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution
from noisescale.capture.per_example.layers.layer_rule import InnerUse, LayerRule, sum_of_gradients
from noisescale.capture.per_example.layers.linear import products_of_rows

OPERANDS = ("query", "key", "value")

OPERAND_OF_PRODUCT = {"AddmmBackward0": (2, "_saved_mat1"), "MmBackward0": (1, "_saved_self")}
"""Which edge of a product leads to the weight, and where the graph keeps what it multiplies."""

EDGES_TO_BIAS = {"AddmmBackward0": (0,), "AddBackward0": (0, 1)}

WHOLE = ("TBackward0", "TransposeBackward0", "ToCopyBackward0")
"""Between a weight and its product: turned, or rounded by autocast."""

_saved_tensor_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
"""A private name of torch, beside the public context managers that set them."""


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of one projection: input [B, T, I] or [B m, T, I], zero gradients where a part is not the projection's."""
    if name.endswith("bias"):
        return sum_of_gradients(grad_output, num_examples)
    assert activation is not None
    return products_of_rows(grad_output, activation, num_examples)


def inner_uses(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Iterator[InnerUse]:
    """Where each projection of a call has its weight and its bias.

    Nothing where the call is not of examples first, nor below checkpointing or other hooks on saved tensors, which let
    what they keep be read once.
    """
    assert isinstance(module, nn.MultiheadAttention)
    operands = [args[index] if index < len(args) else kwargs[name] for index, name in enumerate(OPERANDS)]
    is_plain = all(isinstance(operand, Tensor) and operand.dim() == 3 for operand in operands) and module.batch_first
    has_hooks = _saved_tensor_hooks is None or _saved_tensor_hooks(True) is not None
    if not is_plain or has_hooks:
        return
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    num_rows = operands[0].shape[0]
    for node in _nodes_of_call(output[0].grad_fn, operands):
        kind = node.name()
        if kind in OPERAND_OF_PRODUCT:
            edge, saved = OPERAND_OF_PRODUCT[kind]
            weight, first = _parameter_behind(*node.next_functions[edge])
            if id(weight) in names:
                activation = _examples_first(getattr(node, saved).detach(), num_rows)
                yield InnerUse(
                    names[id(weight)], node, operands[0], activation, _gradient_of_part(num_rows, first, len(weight))
                )
        for edge in EDGES_TO_BIAS.get(kind, ()):
            bias, first = _parameter_behind(*node.next_functions[edge])
            if id(bias) in names:
                yield InnerUse(names[id(bias)], node, operands[0], None, _gradient_of_part(num_rows, first, len(bias)))


def _nodes_of_call(last: Any, operands: list[Tensor]) -> Iterator[Any]:
    """The nodes of the autograd graph from the output back to the operands."""
    seen = {operand.grad_fn for operand in operands}
    to_see = [last]
    while to_see:
        node = to_see.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            to_see += [before for before, _ in node.next_functions]


def _parameter_behind(node: Any, index: int) -> tuple[Tensor, int]:
    """A parameter, or an empty tensor where none is behind an edge, and which of its rows the edge's begin with."""
    first = 0
    while node is not None and not node.name().endswith("AccumulateGrad"):
        if node.name() == "SplitWithSizesBackward0":
            first += sum(node._saved_split_sizes[:index])
        elif node.name() == "SplitBackward0":
            first += index * node._saved_split_size
        elif node.name() not in WHOLE:
            break
        node, index = node.next_functions[0]
    return getattr(node, "variable", torch.empty(0)), first


def _examples_first(rows: Tensor, num_rows: int) -> Tensor:
    """[T B, ·] or [T, B, ·] as [B, T, ·]."""
    return rows.reshape(-1, num_rows, rows.shape[-1]).transpose(0, 1)


def _gradient_of_part(num_rows: int, first: int, num_outputs: int) -> Callable[[Tensor], Tensor]:
    def whole(gradient: Tensor) -> Tensor:
        """The gradient at a node as [B, T, O], zero outside of the part."""
        part_BTo = _examples_first(gradient, num_rows)
        if part_BTo.shape[2] == num_outputs:
            return part_BTo
        whole_BTO = part_BTo.new_zeros(*part_BTo.shape[:2], num_outputs)
        whole_BTO[:, :, first : first + part_BTo.shape[2]] = part_BTo
        return whole_BTO

    return whole


def shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[1, O, I] of a weight, [O] of a bias."""
    parameter = module.get_parameter(name)
    return tuple(parameter.shape) if name.endswith("bias") else (1, *parameter.shape)


MULTIHEAD_ATTENTION = LayerRule(
    parameters=(
        "in_proj_weight",
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ),
    contribute=contribute,
    shape=shape,
    num_feature_dimensions=lambda module: 1,
    inner_uses=inner_uses,
)
