"""Mirrors show a run's noise scale in the tracker that the user has anyway.

A mirror attaches to what is active there. It starts and ends no run of the tracker and moves no step counter.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from noisescale_core.errors import ConfigError

_MODULES = {
    "wandb": ("noisescale.mirrors.trackers.wandb", "WandbMirror"),
    "mlflow": ("noisescale.mirrors.trackers.mlflow", "MlflowMirror"),
    "tensorboard": ("noisescale.mirrors.trackers.tensorboard", "TensorboardMirror"),
}
_PACKAGES = {"wandb": "wandb", "mlflow": "mlflow-skinny", "tensorboard": "tensorboard"}
"""What an index calls them."""


@runtime_checkable
class Mirror(Protocol):
    """Takes the newest values of a run, from the training's thread, at most once a second."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Show the values.

        Args:
            step: Number of the optimizer step.
            values: Finite numbers by name, from `shown_values()`.
        """


def open_mirror(mirror: object) -> Mirror:
    """The mirror that an argument names.

    Args:
        mirror: "wandb" or a run of it, "mlflow" or an active run of it, "tensorboard", the folder of its logs or a
            `SummaryWriter`, or an object of one's own with `log(step, values)`.

    Raises:
        ConfigError: For something else, or where the tracker is not installed.
    """
    if isinstance(mirror, str):
        return _make(mirror)
    if isinstance(mirror, Path) or hasattr(mirror, "add_scalar"):
        return _make("tensorboard", mirror)
    package = type(mirror).__module__.partition(".")[0]
    # A run of wandb has a log() too, with other arguments.
    if package in ("wandb", "mlflow"):
        return _make(package, mirror)
    if isinstance(mirror, Mirror):
        return mirror
    raise ConfigError(
        f"mirror must be one of {', '.join(_MODULES)} or an object with log(step, values), got {mirror!r}"
    )


def _make(name: str, *target: object) -> Mirror:
    if name not in _MODULES:
        raise ConfigError(
            f"mirror must be one of {', '.join(_MODULES)} or an object with log(step, values), got {name!r}"
        )
    module, made = _MODULES[name]
    try:
        return cast(Mirror, getattr(importlib.import_module(module), made)(*target))
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"mirror {name!r} needs the package {missing.name}: pip install {_PACKAGES[name]}"
        ) from missing
