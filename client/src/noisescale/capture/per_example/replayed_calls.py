"""A layer's call once more, one group of examples after another: exact where no formula is known.

PyTorch's own layers alone are run again: they draw no random numbers (dropout between recurrent layers is refused),
keep no state and do nothing but compute, where what a program has written itself may do anything. Hooks of the layer
do not run, and its parameters are read, not touched: the gradients belong to aliases that share their memory.
"""

# B examples, b groups of examples, L = B m rows, N = Σ of the lengths of packed sequences

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from noisescale.capture.per_example.contributions import WholeGradients
from noisescale.capture.per_example.example_rows import rows_an_example


@dataclass(frozen=True, slots=True)
class Padded:
    """A packed sequence that is taken apart.

    Attributes:
        value_LT: Rows, positions, features.
        length_L: On the CPU.
    """

    value_LT: Tensor  # noqa: N815
    length_L: Tensor  # noqa: N815


Rows = Tensor | PackedSequence | Padded

Change = Callable[[Rows], Rows]


@dataclass(frozen=True, slots=True)
class ExampleDims:
    """Which dimension of a layer's tensors counts the examples.

    Attributes:
        of_first: That of its first input and its first output.
        of_others: That of all others: a recurrent layer's states have its layers first.
    """

    of_first: int = 0
    of_others: int = 0


@dataclass(slots=True)
class _Backward:
    """What one backward has brought, and what was computed of it.

    Attributes:
        task: Its number.
        grad_outputs: By place of the output.
        is_computed: Gradients of examples were asked for.
        known: Those of the last slice, where they are kept.
    """

    task: int
    grad_outputs: dict[int, Rows] = field(default_factory=dict)
    is_computed: bool = False
    known: tuple[tuple[int, int], dict[str, Tensor]] | None = None


class ReplayedCall:
    """What a call of a layer was given, and the gradients with respect to what it answered.

    Attributes:
        first: Its first input, with its history.
        num_rows: L of it; None where it has no dimension for them.
        is_late: An output gradient has come after the examples' gradients were computed without it.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dims: ExampleDims) -> None:
        """Keep the arguments, without their history.

        Args:
            module: One of PyTorch's own layers.
            args: Of the call.
            kwargs: Of the call.
            dims: As above.
        """
        bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs).arguments
        arguments = {name: value for name, value in list(bound.items())[1:] if value is not None}
        self.first: Rows = next(iter(arguments.values()))
        self._module = module
        self._dims = dims
        self.num_rows = _num_rows(self.first, dims.of_first)
        self._arguments = _mapped(arguments, detached)
        self._versions = self._current_versions()
        self._device_type = data_of(self.first).device.type
        self._autocast_dtype = (
            torch.get_autocast_dtype(self._device_type) if torch.is_autocast_enabled(self._device_type) else None
        )
        self._backward = _Backward(-1)
        self.is_late = False

    @property
    def is_overwritten(self) -> bool:
        """Whether an input was changed in place since the call."""
        return self._versions != self._current_versions()

    def has_examples(self, num_examples: int | None) -> bool:
        """Whether its rows are the examples, each one or several adjacent ones."""
        if not num_examples or self.num_rows is None:
            return False
        if self._dims.of_first == 0 and isinstance(self.first, Tensor):
            return rows_an_example(self.first, num_examples) is not None
        return self.num_rows == num_examples

    def contradicts(self, num_examples: int) -> bool:
        """Whether the model's own input may have positions first, as this layer's has: then no layer tells examples."""
        if self._dims.of_first == 0 or self.num_rows is None:
            return False
        first = self.first
        num_positions = len(first.batch_sizes) if isinstance(first, PackedSequence) else len(data_of(first))
        return self.num_rows != num_examples or num_positions == num_examples

    def take_gradient(self, task: int, place: int, output: Rows, gradient: Tensor) -> bool:
        """Keep the gradient with respect to an output.

        Args:
            task: Number of the backward.
            place: Of the output among the call's.
            output: Without its history.
            gradient: Of its data.

        Returns:
            Whether it is the first of this call in the backward.
        """
        is_first = task != self._backward.task
        if is_first:
            self._backward = _Backward(task)
        self.is_late = self.is_late or self._backward.is_computed
        self._backward.grad_outputs[place] = _with_data(output, gradient.detach())
        return is_first

    def contribution(self, name: str, num_groups: int, *, is_alone: bool) -> WholeGradients:
        """To one parameter from b groups of examples.

        Args:
            name: The layer's own.
            num_groups: b.
            is_alone: No other call contributes: the gradients of all parameters are kept from one run, else each
                parameter has a run of its own, as a layer that is called at each position would keep too many.
        """
        parameters = dict(self._module.named_parameters())
        names = tuple(parameters) if is_alone else (name,)
        backward = self._backward
        return WholeGradients(
            num_examples=num_groups,
            num_elements=sum(parameters[of_one].numel() for of_one in names),
            dtype=data_of(next(iter(backward.grad_outputs.values()))).dtype,
            gradients=lambda start, stop: self._gradients(backward, names, start, stop, num_groups)[name],
        )

    def _gradients(
        self, backward: _Backward, names: tuple[str, ...], start: int, stop: int, num_groups: int
    ) -> dict[str, Tensor]:
        """Of groups start to stop, [b, ...] each, by the layer's own name of the parameter."""
        key = start, stop
        if backward.known is not None and backward.known[0] == key:
            return backward.known[1]
        backward.is_computed = True
        aliases = {name: nn.Parameter(parameter.detach()) for name, parameter in self._module.named_parameters()}
        twin = _twin(self._module, aliases)
        wanted = [aliases[name] for name in names]
        arguments = _mapped(self._arguments, _opened)
        grad_outputs = {place: _opened(rows) for place, rows in backward.grad_outputs.items()}
        found = []
        for group in range(start, stop):
            outputs = self._outputs(twin, _mapped(arguments, self._part_of(group, num_groups)))
            grads = [data_of(self._part(place, rows, group, num_groups)) for place, rows in grad_outputs.items()]
            asked = [data_of(outputs[place]) for place in grad_outputs]
            for output, grad in zip(asked, grads, strict=True):
                # An output may be made of another (an LSTM cell's of its state): what was seen is the whole of both.
                output.register_hook(_replaced_by(grad))
            found.append(torch.autograd.grad(asked, wanted, grads, materialize_grads=True))
        gradients = dict(zip(names, map(torch.stack, zip(*found, strict=True)), strict=True))
        backward.known = (key, gradients) if len(names) > 1 else None
        return gradients

    def _outputs(self, twin: nn.Module, arguments: dict[str, Any]) -> list[Rows]:
        dtype = self._autocast_dtype
        with torch.enable_grad(), torch.autocast(self._device_type, dtype, dtype is not None, cache_enabled=False):
            return rows_in(type(twin).forward(twin, **arguments))

    def _part_of(self, group: int, num_groups: int) -> Change:
        """For the arguments in their order."""
        places = count()
        return lambda rows: self._part(next(places), rows, group, num_groups)

    def _part(self, place: int, rows: Rows, group: int, num_groups: int) -> Rows:
        dim = self._dims.of_others if place else self._dims.of_first
        num_rows = _num_rows(rows, dim)
        assert num_rows is not None
        size = num_rows // num_groups
        if isinstance(rows, Padded):
            length_l = rows.length_L[group * size : (group + 1) * size]
            value_lT = rows.value_LT[group * size : (group + 1) * size, : int(length_l.max())]
            return pack_padded_sequence(value_lT, length_l, batch_first=True, enforce_sorted=False)
        assert isinstance(rows, Tensor)
        return rows.narrow(dim, group * size, size)

    def _current_versions(self) -> list[int]:
        return [data_of(rows)._version for rows in rows_in(self._arguments)]


def rows_in(answer: Any) -> list[Rows]:
    """The tensors, or packed sequences, in a call's arguments or its answer, in order."""
    found: list[Rows] = []

    def keep(rows: Rows) -> Rows:
        found.append(rows)
        return rows

    _mapped(answer, keep)
    return found


def _replaced_by(grad: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda _: grad


def _twin(module: nn.Module, aliases: dict[str, nn.Parameter]) -> nn.Module:
    """The same layer with other parameters: its own are not exchanged, not even for a moment."""
    twin: nn.Module = type(module).__new__(type(module))
    twin.__dict__.update(module.__dict__)
    twin.__dict__["_parameters"] = dict(aliases)
    if isinstance(module, nn.RNNBase):
        weights = [aliases[name] for name in module._flat_weights_names]
        twin.__dict__["_flat_weights"] = weights
        twin.__dict__["_flat_weight_refs"] = [weakref.ref(weight) for weight in weights]
    return twin


def _num_rows(rows: Rows, dim: int) -> int | None:
    if isinstance(rows, PackedSequence):
        return int(rows.batch_sizes[0])
    if isinstance(rows, Padded):
        return len(rows.length_L)
    return rows.shape[dim] if rows.dim() > dim + 1 else None


def _opened(rows: Rows) -> Rows:
    return Padded(*pad_packed_sequence(rows, batch_first=True)) if isinstance(rows, PackedSequence) else rows


def data_of(rows: Rows) -> Tensor:
    """The tensor that holds the numbers."""
    if isinstance(rows, PackedSequence):
        return rows.data
    return rows.value_LT if isinstance(rows, Padded) else rows


def _with_data(rows: Rows, data: Tensor) -> Rows:
    return rows._replace(data=data) if isinstance(rows, PackedSequence) else data


def detached(rows: Rows) -> Rows:
    """The same without its history."""
    return _with_data(rows, data_of(rows).detach())


def _mapped(value: Any, change: Change) -> Any:
    """The same structure of arguments or outputs with other tensors."""
    if isinstance(value, Rows):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(inner, change) for inner in value)
    return value
