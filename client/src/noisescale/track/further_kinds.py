"""The further kinds of noise scale of a run: their series, opened on first use, and what is measured now and then."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale import capture
from noisescale.guard import Notices
from noisescale.notices.explanations import why_no_estimate, why_no_terms
from noisescale.notices.readable import several
from noisescale.outbox import Outbox
from noisescale.rows.recording import Recording
from noisescale.rows.updates import LoggedStep, Update, update_from_terms
from noisescale.transport.wire import FinishRecord, RunRecord
from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    import torch

    from noisescale.capture.sums.device_values import DeviceValues
    from noisescale.capture.sums.step_norms import StepNorms
    from noisescale.capture.watch import Watch

SILENT_STEPS = 32
"""Measured steps without terms of a kind after which the job says why."""


# A further kind of noise scale of a run: a series of its own, with its own stream and its own latest window.


class KindSeries:
    """Rows of one kind; they hold no loss, the series of kind "simple" has it.

    Args:
        outbox: Of the kind's own stream; None: nothing is sent.
        kind: Of noise scale.
        example: What is sampled independently, in the singular.
        log_every: Updates per row.
        now: Unix seconds.
        notices: Says sentences for people.

    Attributes:
        recent: The latest window.
    """

    def __init__(
        self,
        outbox: Outbox | None,
        *,
        kind: str,
        example: str,
        log_every: int,
        now: Callable[[], float],
        notices: Notices,
    ) -> None:
        self._outbox = outbox
        self._kind = kind
        self._notices = notices
        self._examples = several(example)
        self._num_seen = 0
        self._newest: Update | None = None
        self._bracket: Bracket | None = None
        self.recent = RecentUpdates()
        self._recording = Recording(
            lambda record: None if outbox is None else outbox.send(record),
            log_every=log_every,
            group_seconds=0.0,
            group_names=[],
            start_time=now(),
        )

    def add(self, update: Update, terms: Terms | None) -> None:
        """Add the kind's terms of a step; None where the step gave none."""
        if terms is not None:
            self.recent.add(terms, update.logged.step)
            self._recording.add(update._replace(terms=terms, layers=None, loss=None, path=None))

    def see(self, update: Update, terms: Terms | None, bracket: Bracket | None) -> None:
        """Take a measured step; `add` where it gave terms.

        Args:
            update: Of kind `simple`.
            terms: Of this kind.
            bracket: Between which values the noise scale lies so far; None where that is not known.
        """
        self.add(update, terms)
        if self.recent.num_updates:
            return
        self._newest, self._bracket = update, bracket or self._bracket
        self._num_seen += 1
        if self._num_seen == SILENT_STEPS:
            self._notices.say(f"kind {self._kind} after {SILENT_STEPS} measured steps: {self.why_nothing()}")

    def why_nothing(self) -> str:
        """Why no step has given terms, where none has."""
        if self._newest is None or self._newest.terms is None:
            return why_no_estimate(None if self._newest is None else self._newest.flags, is_silent=False)
        return why_no_terms(
            self._kind,
            num_steps=self._num_seen,
            num_small_batches=self._newest.num_micro_batches,
            bracket=self._bracket,
            examples=self._examples,
        )

    def describe_again(self, record: RunRecord) -> None:
        """Say anew how the stream measures; one that has not begun says it when it does."""
        if self._outbox is not None and self.recent.num_updates:
            self._outbox.send(record)

    def close(self, last: FinishRecord, timeout_seconds: float) -> None:
        """Deliver what is left for at most so long.

        Args:
            last: Ends the stream, if it has begun.
            timeout_seconds: Longest wait.
        """
        self._recording.flush(last.wall_time)
        if self._outbox is not None:
            if self.recent.num_updates:
                self._outbox.send(last)
            self._outbox.close(timeout_seconds)


# Kind `hessian` of a run: measured when the script says so, in a series of its own.


class HessianLog:
    """Hands Hessian-vector products over to their series when their numbers have arrived."""

    def __init__(self, series: KindSeries) -> None:
        self._series = series
        self._values: DeviceValues[Callable[[Terms], Update]] = capture.DeviceValues()

    def measure(
        self,
        watch: "Watch[LoggedStep]",
        logged: LoggedStep,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: Sequence[float] | None,
        curvature_loss: "Callable[[], torch.Tensor] | None",
    ) -> None:
        """Compute the terms; arguments as in `Run.log_hessian`."""
        of_each = [1.0] * len(losses) if sizes is None else [float(size) for size in sizes]
        with watch.unhooked():
            values = capture.hessian_values(
                watch.parameters, losses, curvature_loss, sizes=of_each, buffers=list(watch.model.buffers())
            )
        self._values.send(
            lambda terms: update_from_terms(
                logged,
                terms,
                num_small=len(of_each),
                batch_size=sum(of_each),
                loss=None,
            ),
            values,
        )
        self.collect()

    def collect(self) -> None:
        """Record what has arrived; never waits."""
        self._record(self._values.arrived())

    def drain(self) -> None:
        """Record all; waits for the device."""
        self._record(self._values.drain())

    def _record(self, arrived: Sequence[tuple[Callable[[Terms], Update], list[float]]]) -> None:
        for make_update, (trace, curvature) in arrived:
            update = make_update(Terms(trace_cov=trace, grad_sq_norm=curvature))
            self._series.add(update, update.terms)


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
