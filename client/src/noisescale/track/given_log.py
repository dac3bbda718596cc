"""Records steps whose norms the script has measured: at two batch sizes, or of groups inside groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from noisescale.rows.given_norms import columns_of, nested_terms, noise_by_level, update_from_nested
from noisescale.rows.updates import plain_number, update_from_two_batches
from noisescale.track.step_counter import checked_size
from noisescale.track.step_log import StepLog
from noisescale.track.stream_description import StreamDescription

if TYPE_CHECKING:
    from noisescale_core.estimators.nested_groups import NestedSizes, Tree


class GivenLog:
    """Takes the norms, and hands the steps to the log.

    Args:
        log: The steps of the run.
        stream: Says where the norms come from.
        show: Is told the number of each step.
        log_metrics: Takes the noise of each level, by the number of the step.
    """

    def __init__(
        self,
        log: StepLog,
        stream: StreamDescription,
        *,
        show: Callable[[int], None],
        log_metrics: Callable[[int, Mapping[str, float]], None],
    ) -> None:
        self._log = log
        self._stream = stream
        self._show = show
        self._log_metrics = log_metrics

    def log_norms(
        self,
        small_batch_size: float,
        big_batch_size: float,
        small_sq_norm: float,
        big_sq_norm: float,
        num_small: int | None,
        step: int | None,
        loss: float | None,
        lr: float | None,
        layers: Mapping[str, tuple[float, float]] | None,
    ) -> None:
        """Record a step by norms at two batch sizes; see `Run.log_norms`."""
        if self._stream.estimator == "none":
            self._begin("norms")
        columns: tuple[Sequence[float], Sequence[float]] | None = None
        if layers is not None:
            self._log.name_groups(list(layers))
            columns = columns_of(layers)
        log = self._log
        big = checked_size("big_batch_size", big_batch_size)
        small = checked_size("small_batch_size", small_batch_size)
        # most numbers are plain ones, and a call to find that out takes a hundredth of this one
        big_number = big_sq_norm if type(big_sq_norm) is float else plain_number(big_sq_norm)
        known_loss = loss if loss is None or type(loss) is float else plain_number(loss)
        logged = log.given(step, lr, log.steps.count(big))
        update = update_from_two_batches(logged, small, big, small_sq_norm, big_number, num_small, known_loss, columns)
        log.add(update)
        self._show(logged.step)

    def log_nested_norms(
        self,
        sum_sq_norms: Mapping[str, float],
        big_sq_norm: float,
        sizes: "NestedSizes | Sequence[Tree]",
        *,
        step: int | None,
        loss: float | None,
        lr: float | None,
    ) -> None:
        """Record a step of nested groups; see `Run.log_nested_norms`."""
        terms, known = nested_terms(sum_sq_norms, big_sq_norm, sizes)
        self._begin("nested_groups")
        logged = self._log.given(step, lr).counted(self._log.steps.count(known.num_units))
        plain_loss = None if loss is None else plain_number(loss)
        update = update_from_nested(logged, terms, known, big_sq_norm, plain_loss)
        self._log.add(update)
        if update.terms is not None:
            self._log_metrics(logged.step, noise_by_level(terms, list(sum_sq_norms)))
        self._show(logged.step)

    def _begin(self, estimator: str) -> None:
        """Norms come from the script."""
        if self._stream.estimator == "none":
            self._stream.estimator = estimator
            self._stream.batch_size_source = "argument"
