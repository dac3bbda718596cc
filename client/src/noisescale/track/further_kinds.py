"""The further kinds of noise scale of a run: their series, opened on first use, and what is measured now and then."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale.guard import Notices
from noisescale.outbox.outbox import Outbox
from noisescale.rows.updates import LoggedStep, Update
from noisescale.track.hessian_log import HessianLog
from noisescale.track.kind_series import KindSeries
from noisescale.transport.wire import FinishRecord, RunRecord
from noisescale_core.estimators.flags import Flags

if TYPE_CHECKING:
    import torch

    from noisescale.capture.sums.step_norms import StepNorms
    from noisescale.capture.watch import Watch


class FurtherKinds:
    """Series by kind.

    Args:
        open_outbox: From a kind to where the records of its stream go.
        describe: From a kind to what its stream says of itself.
        example: What is sampled independently, in the singular.
        now: Unix seconds.
        notices: Says sentences for people.

    Attributes:
        series: Of each kind that has one.
    """

    def __init__(
        self,
        open_outbox: Callable[[str], Outbox],
        describe: Callable[[str], RunRecord],
        *,
        example: Callable[[], str],
        now: Callable[[], float],
        notices: Notices,
    ) -> None:
        self._open_outbox = open_outbox
        self._describe = describe
        self._example = example
        self._now = now
        self._notices = notices
        self._hessian: HessianLog | None = None
        self.series: dict[str, KindSeries] = {}

    def open(self, kind: str, log_every: int) -> KindSeries:
        """The series of a kind.

        Args:
            kind: Of noise scale.
            log_every: Updates per row of a series that is new.
        """
        if kind not in self.series:
            self.series[kind] = KindSeries(
                self._open_outbox(kind),
                kind=kind,
                example=self._example(),
                log_every=log_every,
                now=self._now,
                notices=self._notices,
            )
        return self.series[kind]

    def measure_hessian(
        self,
        watch: "Watch[LoggedStep]",
        logged: LoggedStep,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: Sequence[float] | None,
        curvature_loss: "Callable[[], torch.Tensor] | None",
    ) -> None:
        """Measure kind `hessian` now; see `Run.log_hessian`."""
        if self._hessian is None:
            self._hessian = HessianLog(self.open("hessian", 1))
        self._hessian.measure(watch, logged, losses, sizes, curvature_loss)

    def see(self, update: Update, norms: "StepNorms") -> None:
        """Take what a measured step gave of each kind."""
        is_left_out = update.flags & Flags.SMALLER_STEP
        for kind, series in self.series.items():
            terms = None if is_left_out else norms.kind_terms.get(kind)
            series.see(update, terms, norms.kind_brackets.get(kind))
        self.collect()

    def collect(self) -> None:
        """Record what has arrived; never waits."""
        if self._hessian is not None:
            self._hessian.collect()

    def drain(self) -> None:
        """Record all; waits for the device."""
        if self._hessian is not None:
            self._hessian.drain()

    def describe_again(self) -> None:
        """Say anew how the streams measure."""
        for kind, series in self.series.items():
            series.describe_again(self._describe(kind))

    def close(self, last: FinishRecord, timeout_seconds: float) -> None:
        """Deliver what is left of each series, for at most so long."""
        for series in self.series.values():
            series.close(last, timeout_seconds)
