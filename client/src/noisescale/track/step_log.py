"""Turns logged steps into rows, layer records and the latest window; one for each watched optimizer."""

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale.guard import Notices
from noisescale.notices.explanations import explain_ranks, explain_sizes, explain_update, is_weighted
from noisescale.notices.step_checks import NeighbourCheck, OrderCheck, RankCheck, WeightingCheck
from noisescale.rows.recording import Recording, row_from, update_of
from noisescale.rows.row_parts import LayerNorms
from noisescale.rows.updates import LoggedStep, Update, plain_number, update_from_norms, update_without_norms
from noisescale.track.path_log import PathKeeper, PathLog
from noisescale.track.promise_log import LossMoments
from noisescale.track.step_counter import RecentSizes, StepCounter, StepPace, checked_size
from noisescale.transport.wire import Measurement, Record
from noisescale.window.divergence import FiniteWatch
from noisescale.window.recent_updates import RecentUpdates
from noisescale.window.run_history import RunHistory
from noisescale.window.standing import RunningLosses, Standing
from noisescale_core.advice.learning_rate.rate_coefficients import schedule_of
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, rate_verdict, with_promise
from noisescale_core.estimators.flags import Flags

if TYPE_CHECKING:
    import torch

    from noisescale.capture.sums.step_norms import StepNorms
    from noisescale.capture.watch import Watch

PARTS_OF_ONE_LOSS = ("per_example", "split")
"""Estimators whose small batches share one loss, and what it is divided by."""

MAX_UNMEASURED = 256
"""Steps of which nothing was measured that wait to be recorded; together they cost less."""

MAX_UNSEEN = 192
"""Updates that wait to be added to the windows and the history, which are looked at now and then: so one call in 192
pays for it, too few for the slowest of a hundred to show it."""

OnNorms = Callable[[LoggedStep, "StepNorms", Update], None]


class StepLog:
    """The steps of one optimizer, from what was measured to what is sent.

    Args:
        send: Takes the records.
        now: Unix seconds.
        notices: Says sentences once.
        group_seconds: Least time between two layer records, in seconds.
        log_every: Updates per row.
        on_norms: Told about each measured step that was recorded.

    Attributes:
        steps: Numbers the steps and counts examples.
        num_estimates: Updates in the latest windows.
        finite: Since when loss or gradients are not finite.
        pace: How long a step takes.
        path: How far the parameters got.
        batch_size_source: Where the batch size comes from; None while unknown.
        newest_flags: Of the newest update; None before the first.
        takes_examples: A single backward a step is no fault: each example will be a small batch.
    """

    def __init__(
        self,
        send: Callable[[Record], None],
        now: Callable[[], float],
        notices: Notices,
        *,
        group_seconds: float,
        log_every: int,
        on_norms: OnNorms,
        path_keeper: PathKeeper | None = None,
    ) -> None:
        self._send = send
        self._now = now
        self._notices = notices
        self._group_seconds = group_seconds
        self._log_every = log_every
        self._on_norms = on_norms
        self.steps = StepCounter()
        self.num_estimates = 0
        self._recent = RecentUpdates()
        self._history = RunHistory()
        self._losses = RunningLosses()
        self._is_watched = False
        self._unseen: list[Update | Measurement] = []
        self._catching = threading.Lock()
        self.finite = FiniteWatch(notices)
        self.newest_flags: int | None = None
        self.pace = StepPace()
        self.path = PathLog(path_keeper)
        self._moments: LossMoments | None = None
        self._ranks = RankCheck()
        self._order = OrderCheck()
        self._neighbours = NeighbourCheck(notices)
        self._weighting = WeightingCheck(notices)
        self._sizes = RecentSizes(notices)
        self.batch_size_source: str | None = None
        self.takes_examples = False
        self._unmeasured: deque[tuple[int, int, float | None, float | None]] = deque()
        self._recording = self._new_recording([])

    def start_watch(self, group_names: Sequence[str], log_every: int) -> None:
        """From here on steps have these layers, and rows so many updates; rows so far are handed out."""
        self._is_watched = True
        self.steps.start_watch()
        self.path.forget()
        self._moments = None
        self._log_every = log_every
        self.change_groups(group_names)

    def change_groups(self, group_names: Sequence[str]) -> None:
        """From here on steps have these layers, and go on counting."""
        self.flush()
        self._recording = self._new_recording(group_names)

    def name_groups(self, group_names: list[str]) -> None:
        """From here on steps have these layers, if they had others."""
        if group_names != self._recording.group_names:
            self.change_groups(group_names)

    def given(self, step: int | None, lr: float | None, num_examples: float | None) -> LoggedStep:
        """A step that is logged now by numbers of the script, which measures it itself or not at all.

        Args:
            step: Its number; None: the next.
            lr: Learning rate.
            num_examples: In it; None where unknown.
        """
        rate = lr if lr is None or type(lr) is float else float(lr)
        number, examples = self.steps.take(step, num_examples)
        # as `LoggedStep(…)`, in a third of its time
        return tuple.__new__(LoggedStep, (number, self._now(), rate, examples, 0, True))

    def forget(self) -> None:
        """Another model is trained from here on: nothing of the one before is true of it."""
        self._catch_up()  # the losses are of the run
        self._recent, self._history, self.num_estimates = RecentUpdates(), RunHistory(), 0
        self.path.forget()
        self._moments = None
        self._ranks, self._weighting = RankCheck(), WeightingCheck(self._notices)
        self._order, self._neighbours = OrderCheck(), NeighbourCheck(self._notices)
        self._sizes = RecentSizes(self._notices)
        self.newest_flags = None

    def flush(self) -> None:
        """Hand out what has been added since the last records."""
        if self._unmeasured:
            self._record_unmeasured(self._unmeasured[-1][0] + 1)
        self._recording.flush(self._now())

    def skip(
        self, watch: "Watch[LoggedStep]", loss: "torch.Tensor | float | None", lr: float | None, step: int | None
    ) -> bool:
        """Log a step of which nothing is measured, in a few microseconds: all that a budget may leave for it.

        Returns:
            False where it takes more, as for a loss on a device.
        """
        if type(loss) is not float and loss is not None:
            if not getattr(loss, "is_cpu", True):
                return False
            loss = plain_number(loss)
        steps, num_steps = self.steps, watch.num_steps
        number = steps.pass_by(num_steps) if step is None else steps.number_watched(step, num_steps)
        self._unmeasured.append((num_steps, number, watch.learning_rate() if lr is None else float(lr), loss))
        if watch.sent.is_late() or len(self._unmeasured) >= MAX_UNMEASURED:
            self._record_arrived(watch)
            if not watch.sent:
                self._record_unmeasured(num_steps + 1)
        watch.skip_step()
        return True

    def _record_unmeasured(self, num_steps: int) -> None:
        """Record the steps of which nothing was measured, up to a number of optimizer steps."""
        unmeasured = self._unmeasured
        while unmeasured and unmeasured[0][0] < num_steps:
            _, number, lr, loss = unmeasured.popleft()
            self._add_unmeasured(number, lr, loss)

    def _add_unmeasured(self, step: int, lr: float | None, loss: float | None) -> None:
        self._recording.add_unmeasured(step, lr, loss)
        if self._moments is not None:
            self._moments.add(step, loss if loss is not None and math.isfinite(loss) else None)
        self._catch_up()
        self._history.see_rate(lr)
        if loss is not None:
            self._losses.add(loss)
            self.finite.see_loss(step, is_finite=math.isfinite(loss))

    def log_watched(
        self,
        watch: "Watch[LoggedStep]",
        *,
        loss: "torch.Tensor | float | None",
        batch_size: float | None,
        lr: float | None,
        step: int | None,
    ) -> None:
        """Log the current step of a watch, measured or not."""
        number = self.steps.number_watched(step, watch.num_steps)
        is_measured = watch.is_measured
        size = None if batch_size is None else checked_size("batch_size", batch_size)
        rate = watch.learning_rate() if lr is None else float(lr)
        now = self._now()
        self.pace.see(number, now)
        logged = LoggedStep(number, now, rate, num_steps=watch.num_steps, is_measured=is_measured)
        self.path.begin(watch.path, number)
        if watch.estimator in PARTS_OF_ONE_LOSS and is_weighted(loss):
            self._neighbours.see_shared_weights()
        watch.log_step(logged, batch_size=size, loss=loss)
        self.takes_examples = watch.takes_examples
        self._record_arrived(watch)

    def collect(self, watch: "Watch[LoggedStep]") -> None:
        """Record the steps whose values have arrived or were held."""
        watch.sent.hurry()
        self._record_arrived(watch)

    def drain(self, watch: "Watch[LoggedStep]") -> None:
        """Record all steps of a watch that ends; waits for the device."""
        self._record_arrived(watch, is_last=True)

    def _record_arrived(self, watch: "Watch[LoggedStep]", *, is_last: bool = False) -> None:
        """Record the steps whose values have arrived, and what the path says by then.

        Args:
            watch: What measures.
            is_last: All of them; waits for the device.
        """
        arrived = watch.sent.drain() if is_last else watch.sent.arrived()
        if watch.path is not None and watch.path.promise is not None:
            self._moments = self._moments or LossMoments()
            self.path.promise.see(arrived)
        self.path.collect(watch.path, self._number_of_update, is_last=is_last)
        self.record(arrived)

    def _number_of_update(self, update: int) -> int:
        return max(0, self.steps.number_now(None, update))

    def log_unwatched(
        self, loss: "torch.Tensor | float | None", batch_size: float | None, lr: float | None, step: int | None
    ) -> None:
        """Log a step before anything is watched."""
        size = None if batch_size is None else checked_size("batch_size", batch_size)
        logged = self.given(step, lr, size)
        self.add(update_without_norms(logged, size, None if loss is None else plain_number(loss)))

    def record(self, arrived: "Sequence[tuple[LoggedStep, StepNorms]]") -> None:
        """Record steps whose values have reached the host."""
        for logged, norms in arrived:
            if self._unmeasured:
                self._record_unmeasured(logged.num_steps)
            if not logged.is_measured:
                self._add_unmeasured(logged.step, logged.lr, norms.loss)
                continue
            is_explained = explain_ranks(norms, self._notices)
            if not is_explained:
                explain_sizes(norms, self._notices, takes_examples=self.takes_examples)
            self.batch_size_source = self.batch_size_source or norms.sizes.source
            examples = self.steps.count_watched(norms.sizes.batch_size, logged.num_steps)
            flags = 0 if norms.size_slope is None else int(self._weighting.flags_of(norms))
            weighed = norms if norms.sizes.are_equal else self._weighting.corrected(norms)
            update = update_from_norms(logged.counted(examples), weighed)
            if norms.num_ranks > 1:
                flags |= self._ranks.flags_of(weighed)
            if update.terms is not None:
                flags |= self._order.flags_of(weighed, update.terms) | self._neighbours.flags_of(norms)
            if flags:
                update = update._replace(flags=update.flags | flags)
            if not is_explained:
                explain_update(update, norms, self._notices)
            self._on_norms(logged, norms, self.add(update))

    def learning_rate(self, optimizer: str | None, planned_steps: int | None, *, has_ended: bool) -> RateVerdict:
        """Whether the learning rate is too low, right or too high, and what the updates have promised."""
        found = rate_verdict(
            self.path.path,
            optimizer=optimizer,
            planned_steps=planned_steps,
            has_ended=has_ended,
            schedule=schedule_of(self.history.rates, planned_steps),
            divergence=self.finite.divergence,
        )
        promise = self.path.promise
        losses = [] if self._moments is None else self._moments.since(self.path.start)
        return with_promise(found, losses, promise.moments)

    def standing(self, planned_steps: int | None, watch: "Watch[LoggedStep] | None") -> Standing:
        """Where the run stands, steps of which nothing was measured included.

        Args:
            planned_steps: Of the whole run; None where nobody has said.
            watch: What measures; None where nothing is watched.
        """
        if watch is not None and not watch.sent:
            self._record_unmeasured(watch.num_steps + 1)
        history = self.history
        return Standing(
            looks=history.looks,
            path=self.path.path,
            schedule=schedule_of(history.rates, planned_steps),
            losses=self._losses.so_far(),
            batch_size=self.batch_in_use,
            model=None if watch is None else watch.model,
        )

    @property
    def batch_in_use(self) -> float | None:
        """Examples of a step as they are now; None while unknown."""
        return self._sizes.batch_in_use

    def add_plain(
        self,
        step: int | None,
        lr: float | None,
        sizes: tuple[float, float, int],
        terms: tuple[float, float],
        loss: float | None,
        layers: LayerNorms | None = None,
    ) -> int | None:
        """Log a step that nothing is out of the ordinary with: as `given` and `add` do, with less on the way.

        Args:
            step: Its number; None: the next.
            lr: Learning rate.
            sizes: Examples of a small batch and of the step, and small batches in the step.
            terms: tr Σ and |G|², as numbers whose squares are finite.
            loss: Finite, or None.
            layers: The same of each layer, where the step has any.

        Returns:
            The step's number; None where it has to be looked at more closely, and nothing has happened.
        """
        recording = self._recording
        if self._is_watched or not recording.hands_out_each or recording.has_groups is (layers is None):
            return None
        if not self._sizes.sees_again(sizes[1]):
            return None
        rate = lr if lr is None or type(lr) is float else float(lr)
        number, examples = self.steps.take(step, sizes[1])
        row = row_from(number, self._now(), rate, examples, sizes, terms, loss)
        self.newest_flags = 0
        self.num_estimates += 1
        self.finite.see_plain(number, loss)
        self._unseen.append(row)
        if len(self._unseen) >= MAX_UNSEEN:
            self._catch_up()
        self._send(row)
        if layers is not None:
            recording.add_layers_of(row, layers)
        return number

    def add(self, update: Update) -> Update:
        """Add one update to the row and to the window; as it is taken, without terms where it is far smaller."""
        update = self._sizes.see(update)
        if self.path.parts:
            part = self.path.take(update.logged.step)
            if part is not None:
                update = update._replace(path=part)
        self.newest_flags = update.flags
        self.finite.see(update)
        if update.terms is not None:
            self.num_estimates += 1
        self._unseen.append(update)
        if len(self._unseen) >= MAX_UNSEEN:
            self._catch_up()
        self._recording.add(update)
        if self._moments is not None:
            self._moments.add(update.logged.step, update.loss)
        return update

    @property
    def recent(self) -> RecentUpdates:
        """The latest window."""
        self._catch_up()
        return self._recent

    @property
    def history(self) -> RunHistory:
        """The run so far."""
        self._catch_up()
        return self._history

    def _catch_up(self) -> None:
        """Add to the windows and the history what they have not seen yet.

        Threads come one at a time, by the recorder's lock; a signal may come in between and must not add twice.
        """
        if not self._catching.acquire(blocking=False):
            return
        try:
            unseen, self._unseen = self._unseen, []
            for one in unseen:
                update = update_of(one) if isinstance(one, Measurement) else one
                self._history.add(update)
                if update.loss is not None:
                    self._losses.add(update.loss)
                elif update.flags & Flags.NONFINITE_LOSS:
                    self._losses.add(math.nan)
                if update.terms is not None:
                    self._recent.add(update.terms, update.logged.step)
        finally:
            self._catching.release()

    def _new_recording(self, group_names: Sequence[str]) -> Recording:
        return Recording(
            self._send,
            log_every=self._log_every,
            group_seconds=self._group_seconds,
            group_names=group_names,
            start_time=self._now(),
        )
