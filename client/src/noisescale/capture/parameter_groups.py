"""Which layer a parameter belongs to, read from its name."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from noisescale_core.errors import ConfigError

MAX_GROUPS = 256
"""Groups per record of the wire format."""

MAX_NAME = 256

OTHER = "other"

Grouping = Literal["layer", "none"] | Callable[[str], str]

LOOK_EVERY = 8
"""Measured steps between two looks: one at 1,000 parameters takes 40 µs."""


def group_parameters(names: Sequence[str], grouping: Grouping = "layer") -> tuple[list[str], list[int]]:
    """Group names in network order, and for each parameter the index of its group.

    With more than 256 layers the names are cut to fewer components; what is left over then goes to "other".

    Args:
        names: Parameter names as in `model.named_parameters()`.
        grouping: "layer", "none" for no groups at all, or a function from parameter name to group name.

    Raises:
        ConfigError: For another grouping.
    """
    if grouping == "none":
        return [], [-1] * len(names)
    if grouping == "layer":
        labels = _bounded([layer_of(name) for name in names])
    elif callable(grouping):
        labels = _bounded([_checked(str(grouping(name))) for name in names])
    else:
        raise ConfigError(f"groups must be 'layer', 'none' or a function of the parameter name, got {grouping!r}")
    groups = list(dict.fromkeys(labels))
    position = {group: index for index, group in enumerate(groups)}
    return groups, [position[label] for label in labels]


def _checked(label: str) -> str:
    if not label.strip() or len(label) > MAX_NAME or not label.isprintable():
        raise ConfigError(f"names of groups must be printable texts of 1 to {MAX_NAME} characters, got {label[:80]!r}")
    return label


def layer_of(name: str) -> str:
    """The module path up to its first numeric component, else the path without the parameter's own name.

    "blocks.0.attn.qkv.weight" is "blocks.0", "embed.weight" is "embed", "0.weight" is "0", "weight" stays itself.
    """
    path = name.split(".")[:-1]
    for depth, component in enumerate(path, start=1):
        if component.isdecimal():
            return ".".join(path[:depth])
    return ".".join(path) or name


def _bounded(labels: list[str]) -> list[str]:
    depth = max((label.count(".") + 1 for label in labels), default=1)
    while len(set(labels)) > MAX_GROUPS and depth > 1:
        depth -= 1
        labels = [".".join(label.split(".")[:depth]) for label in labels]
    kept = set(list(dict.fromkeys(labels))[: MAX_GROUPS - 1])
    if len(set(labels)) <= MAX_GROUPS:
        return labels
    return [label if label in kept else OTHER for label in labels]


# Whether an optimizer trains the parameters that it trained when they were looked up, or others by now.
#
# Layers are unfrozen in stages, and given to the optimizer later (`add_param_group`). What is measured has to follow,
# or the numbers are those of a part of the model, and look like any others.


class TrainedParameters:
    """The number of parameters that require a gradient and that the optimizer holds.

    Args:
        model: Whose they are.
        optimizer: None: all of the model's.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        self._model = model
        self._optimizer = optimizer
        self._number = self._count()
        self._num_asked = 0

    def have_changed(self) -> bool:
        """True once after a change, when asked after each step at most 8 steps later."""
        self._num_asked += 1
        if self._num_asked % LOOK_EVERY:
            return False
        before, self._number = self._number, self._count()
        return self._number not in (before, 0)

    def _count(self) -> int:
        return sum([parameter.requires_grad for parameter in self._held()])

    def _held(self) -> Iterable[Tensor]:
        if self._optimizer is None:
            return self._model.parameters()
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
