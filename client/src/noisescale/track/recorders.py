"""The recorders of a run: one for each optimizer, by name."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from noisescale.description import RunDescription
from noisescale.track.step_counter import checked_size
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale.track.recorder import Recorder


class Recorders:
    """The run's own recorder, and one beside it for each further optimizer.

    Args:
        main: Of the run itself.
        open_beside: Makes the recorder of a run beside it, from an id and a description.

    Attributes:
        main: Of the run itself, and of the first optimizer.
    """

    def __init__(self, main: "Recorder", open_beside: "Callable[[str, RunDescription], Recorder]") -> None:
        self.main = main
        self._open_beside = open_beside
        self._main_name: str | None = None
        self._others: dict[str, Recorder] = {}

    def all(self) -> "list[Recorder]":
        """In the order in which they were opened."""
        return [self.main, *self._others.values()] if self._others else [self.main]

    def find(self, name: str | None) -> "Recorder | None":
        """What records an optimizer; None: the first."""
        return self.main if name is None or name == self._main_name else self._others.get(name)

    def named(self, name: str | None) -> "Recorder":
        """What records an optimizer; None: the first.

        Raises:
            ConfigError: For a name that no watch() has given.
        """
        recorder = self.find(name)
        if recorder is None:
            raise self.unknown(name)
        return recorder

    def unknown(self, name: str | None) -> ConfigError:
        """What to say of a name that no watch() has given."""
        known = [known for known in (self._main_name, *self._others) if known is not None]
        return ConfigError(f"name must be one that watch() was given ({', '.join(known) or 'none'}), got {name!r}")

    def start(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | None",
        name: str | None,
        start: "Callable[[Recorder], None]",
    ) -> None:
        """Begin to watch an optimizer: the run itself records the first, a run beside it each further one.

        Args:
            model: That it trains.
            optimizer: None: the steps end with the log.
            name: Of the optimizer.
            start: Begins it; an optimizer that it refuses leaves nothing behind.

        Raises:
            ConfigError: For a second optimizer without a name, before a step of the first was logged: a set-up of
                several. Later it is another training, as when a cell of a notebook runs again.
        """
        is_first = self.main.watch is None and not self._others
        is_main = is_first or name is None or name == self._main_name
        recorder = self.main if is_main else self._others.get(str(name)) or self._begin(str(name))
        if (
            recorder.watch is not None
            and not recorder.has_logged_watched
            and not recorder.watch.is_of(model, optimizer)
        ):
            raise ConfigError(
                "this run watches an optimizer already: call unwatch() first, or give each of several optimizers a "
                'name of its own, as in watch(model, optimizer, name="generator")'
            )
        start(recorder)
        if is_first:
            self._main_name = name
        elif not is_main:
            self._others[str(name)] = recorder

    def _begin(self, name: str) -> "Recorder":
        described = self.main.description
        description = replace(
            described,
            task=f"{described.task}/{name}",
            name=f"{described.name or self.main.run_id[:8]} · {name}",
            config={**described.config, "optimizer_of_run": self.main.run_id},
        )
        return self._open_beside(str(uuid.uuid4()), description)

    # ---- what several optimizers see alike

    def unwatch(self) -> None:
        """Take every hook off."""
        for recorder in self.all():
            recorder.unwatch()

    def begin_micro_batch(self, num_examples: "float | torch.Tensor | None") -> None:
        """From here on all backward passes are one small batch of this size.

        Raises:
            ConfigError: For a size that is none; then there is no small batch.
        """
        if isinstance(num_examples, int | float):
            checked_size("num_examples", num_examples, may_be_zero=True)
        for recorder in self.all():
            for watch in recorder.watches():
                watch.begin_micro_batch()

    def end_micro_batch(self, num_examples: "float | torch.Tensor | None") -> None:
        """Close the small batch."""
        for recorder in self.all():
            for watch in recorder.watches():
                watch.end_micro_batch(num_examples)

    def ignore(self, name: str | None, is_ignoring: bool) -> None:
        """Leave backward passes out from here on, or no longer; for one optimizer, or for all."""
        for recorder in self.all() if name is None else [self.named(name)]:
            for watch in recorder.watches():
                watch.ignore(is_ignoring)
