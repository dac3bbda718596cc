"""Cuts the arguments of a forward into parts along the batch, and puts the parts' outputs together again."""

# N examples, K parts

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class NotSeparableError(Exception):
    """The parts of an output do not make the whole; says why."""


def part_sizes(num_examples: int, num_parts: int) -> list[int]:
    """Examples of each part: as equal as can be, none empty, so fewer parts where there are fewer examples."""
    count = min(num_parts, num_examples)
    return [num_examples // count + (index < num_examples % count) for index in range(count)]


def cut(arguments: Any, sizes: Sequence[int]) -> list[Any]:
    """The arguments of each part; tensors of another first dimension, and all else, come whole.

    Args:
        arguments: A tensor, or lists, tuples and dictionaries of such.
        sizes: Examples of the parts.
    """
    if isinstance(arguments, Tensor):
        is_batch = arguments.dim() > 0 and arguments.shape[0] == sum(sizes)
        return list(arguments.split(list(sizes))) if is_batch else [arguments] * len(sizes)
    if isinstance(arguments, Mapping):
        pieces = {key: cut(value, sizes) for key, value in arguments.items()}
        return [_like(arguments, {key: of[k] for key, of in pieces.items()}) for k in range(len(sizes))]
    if isinstance(arguments, list | tuple):
        columns = [cut(value, sizes) for value in arguments]
        return [_sequence_like(arguments, [of[k] for of in columns]) for k in range(len(sizes))]
    return [arguments] * len(sizes)


def join(outputs: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The output for all examples.

    Raises:
        NotSeparableError: Unless every tensor has the batch first, and all else is the same for all parts.
    """
    first = outputs[0]
    if any(type(output) is not type(first) for output in outputs):
        raise NotSeparableError(f"an output is a {type(first).__name__} of one part and something else of another")
    if isinstance(first, Tensor):
        if any(output.dim() == 0 or output.shape[0] != size for output, size in zip(outputs, sizes, strict=True)):
            raise NotSeparableError(f"an output of shape {list(first.shape)} does not have the batch first")
        return torch.cat(list(outputs))
    if isinstance(first, Mapping | list | tuple) and any(len(output) != len(first) for output in outputs):
        raise NotSeparableError("outputs of the parts have different lengths")
    if isinstance(first, Mapping):
        return _like(first, {key: join([output[key] for output in outputs], sizes) for key in first})
    if isinstance(first, list | tuple):
        return _sequence_like(first, [join(parts, sizes) for parts in zip(*outputs, strict=True)])
    if first is None or isinstance(first, bool | int | float | str):
        if any(output != first for output in outputs):
            raise NotSeparableError(f"an output is {first!r} of one part and something else of another")
        return first
    raise NotSeparableError(f"an output of type {type(first).__name__} cannot be put together")


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors of an output, in their order."""
    if isinstance(value, Tensor):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in inner for tensor in tensors_in(item)]


def _like(model: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A dictionary of the same type; classes such as Hugging Face's ModelOutput take their fields by name."""
    if type(model) is dict:
        return values
    try:
        return type(model)(**values)
    except TypeError as fault:
        raise NotSeparableError(f"a {type(model).__name__} cannot be made anew") from fault


def _sequence_like(model: Sequence[Any], values: list[Any]) -> Any:
    if hasattr(model, "_fields"):  # a named tuple
        return type(model)(*values)
    return type(model)(values)  # type: ignore[call-arg]
