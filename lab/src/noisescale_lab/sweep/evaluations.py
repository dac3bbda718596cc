"""What one training says of itself: evaluations that it yields, or the metric of a run that it logs into."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal
from uuid import UUID

from noisescale.run.run import Run
from noisescale_core.errors import ConfigError

Evaluation = tuple[int, float]
"""Optimizer steps taken so far, and the metric there."""

ReadRun = Callable[[str, str], Sequence[Evaluation]]
"""From a run's id and a metric's name to its evaluations, as the server has them."""


class Evaluations:
    """The evaluations of one training, one at a time.

    `train()` may yield (steps, metric); or yield its run each time it has logged the metric; or return a run, or the
    id of one, when it is done.

    Args:
        given: What `train()` gave.
        metric: Name that runs log; None: none was named.
        read_run: Asks the server for a run's metric.

    Attributes:
        run_id: Of the run that it logs into; None where it yields its evaluations.
        is_whole: All evaluations were there at once: the training has ended.
    """

    def __init__(self, given: object, metric: str | None, read_run: ReadRun) -> None:
        self.run_id: str | None = None
        self.is_whole = isinstance(given, Run | str | UUID)
        self._metric, self._read_run = metric, read_run
        self._run: Run | None = None
        self._num_read = 0
        self._waiting: deque[Evaluation] = deque()
        self._items: Iterator[Any] = iter(())
        if self.is_whole:
            self._take(given)
        elif isinstance(given, Iterable):
            self._items = iter(given)
        else:
            raise ConfigError(f"train() must yield (step, metric), or give a run or its id, got {given!r}")

    def next(self) -> Evaluation | None:
        """One more evaluation, None at the end.

        Raises:
            ConfigError: For what is neither a pair of numbers nor a run with that metric.
        """
        while not self._waiting:
            item = next(self._items, None)
            if item is None:
                return None
            self._take(item)
        return self._waiting.popleft()

    def close(self, status: Literal["finished", "failed"]) -> None:
        """Finish the run, and let a generator end its `with` and `finally` blocks."""
        if self._run is not None and not self._run.is_finished:
            self._run.finish(status)
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def _take(self, item: object) -> None:
        if isinstance(item, Run):
            self._take_run(item)
        elif isinstance(item, str | UUID):
            for _ in self._items:  # the training goes on to its end
                pass
            self.is_whole, self.run_id = True, str(item)
            self._waiting.extend(self._read_run(self.run_id, self._named()))
        else:
            self._waiting.append(_checked(item))

    def _take_run(self, run: Run) -> None:
        name = self._named()
        self._run, self.run_id = run, run.id
        if self.is_whole and not run.is_finished:
            run.finish()
        new = run.logged_metrics.of(name)[self._num_read :]
        self._num_read += len(new)
        if not new:
            said = ", ".join(run.logged_metrics.names) or "nothing; a run that is disabled keeps nothing"
            raise ConfigError(f"train() gave a run without a new value of {name!r}, it has logged {said}")
        # what is logged at step k was measured after k + 1 steps, as the server counts
        self._waiting.extend((step + 1, value) for step, value in new)

    def _named(self) -> str:
        if self._metric is None:
            raise ConfigError("train() gave a run: name the metric that it logs, as in sweep(…, metric='eval_loss')")
        return self._metric


def _checked(found: Any) -> Evaluation:
    try:
        step, value = found
        return int(step), float(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"train() must yield (step, metric), got {found!r}") from error
