"""What is kept of a run while it passes by, for the questions that several runs answer together."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from noisescale_importers.delivery.assembly import Item, Logged, Measured
from noisescale_importers.roles import guessed
from noisescale_importers.source import TrialStatus

MAX_POINTS = 1_000
MAX_BLOCKS = 256
MAX_LATE_METRICS = 20

PAUSE = 10.0
"""Of the usual time of a step: what took longer was no step, but a job that waited or was started again."""

SAME = 1e-4
"""Relative difference of norms that were clipped to one length."""

MIN_NORMS = 20
CLIPPED_SHARE = 0.1
"""Of norms that are as large as the largest: those of clipped gradients are, those of others never."""


class Curve:
    """Values along steps, thinned by halves where there are many; the last value of a step counts."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self._every = 1
        self._num_seen = 0

    def add(self, step: int, value: float) -> None:
        """Add a value; one at an earlier step takes the place of those since then, as a job does that went back."""
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.values.pop()
        self._num_seen += 1
        if self._num_seen % self._every == 0:
            self.steps.append(step)
            self.values.append(value)
        if len(self.steps) > 2 * MAX_POINTS:
            self.steps, self.values = self.steps[1::2], self.values[1::2]
            self._every *= 2


@dataclass(slots=True)
class NormBlock:
    """Means over neighbouring steps at one batch size.

    Attributes:
        batch: Examples of an optimizer step.
        num_steps: How many steps.
        sum_sq_norm: Sum of |g_B|².
        sum_loss: Sum of the training loss.
    """

    batch: float
    num_steps: int
    sum_sq_norm: float
    sum_loss: float

    @property
    def sq_norm(self) -> float:
        """Mean |g_B|²."""
        return self.sum_sq_norm / self.num_steps

    @property
    def loss(self) -> float:
        """Mean training loss."""
        return self.sum_loss / self.num_steps


class Norms:
    """Squared gradient norms with loss and batch, in blocks of neighbouring steps."""

    def __init__(self) -> None:
        self.blocks: list[NormBlock] = []
        self._block_steps = 1
        self._norm: tuple[int, float] | None = None
        self._state: tuple[int, float, float] | None = None
        self._largest = 0.0
        self._num_largest = 0
        self._num_norms = 0

    @property
    def are_clipped(self) -> bool:
        """Whether many norms have the same largest length, as clipped gradients have."""
        return self._num_norms >= MIN_NORMS and self._num_largest >= CLIPPED_SHARE * self._num_norms

    def _see_length(self, norm: float) -> None:
        self._num_norms += 1
        if norm > self._largest * (1 + SAME):
            self._largest, self._num_largest = norm, 1
        elif norm >= self._largest * (1 - SAME):
            self._num_largest += 1

    def see_norm(self, step: int, norm: float) -> None:
        """The norm of a step's gradient, before or after its loss."""
        self._norm = (step, norm)
        self._join()

    def see_state(self, step: int, loss: float, batch: float) -> None:
        """Loss and batch of a step."""
        self._state = (step, loss, batch)
        self._join()

    def _join(self) -> None:
        if self._norm is None or self._state is None or self._norm[0] != self._state[0]:
            return
        norm, (_, loss, batch) = self._norm[1], self._state
        self._norm = self._state = None
        if not (math.isfinite(norm) and norm >= 0):
            return
        self._see_length(norm)
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.batch == batch and last.num_steps < self._block_steps:
            last.num_steps += 1
            last.sum_sq_norm += norm * norm
            last.sum_loss += loss
            return
        self.blocks.append(NormBlock(batch, 1, norm * norm, loss))
        if len(self.blocks) > 2 * MAX_BLOCKS:
            self._halve()

    def _halve(self) -> None:
        """Put neighbours of equal batch together; each block then may hold twice the steps."""
        self._block_steps *= 2
        kept: list[NormBlock] = []
        for block in self.blocks:
            last = kept[-1] if kept else None
            if last is not None and last.batch == block.batch and last.num_steps + block.num_steps <= self._block_steps:
                last.num_steps += block.num_steps
                last.sum_sq_norm += block.sum_sq_norm
                last.sum_loss += block.sum_loss
            else:
                kept.append(block)
        self.blocks = kept


@dataclass
class Summary:
    """One imported run.

    Attributes:
        run_id: On the server.
        name: For people.
        task: Of the run.
        metric: Name of the evaluation metric; None: it has none.
        norm_name: Name of the gradient norm; None: it has none.
        seed: Which repeat it is, or None.
        unit: What examples count as.
        units_per_example: How many of them an example is.
        steps_to_target: Where the source says those alone.
        is_one_row: Its one row says how it ended.
        status: How it ended as a trial of a study.
        targets: Of the metric, as the source names them.
        lr: The largest learning rate: of a schedule, its peak.
        batches: Batch sizes, with the number of rows at each.
        loss: Training loss.
        values: The evaluation metric.
        norms: Squared gradient norms.
        has_diverged: A training loss was not finite.
        times: Unix seconds, where rows have them.
        elapsed: Seconds since the start, where rows have those.
        has_open_metric: Nobody has said which the metric is: one that comes late is taken.
        late: By name, metrics that may be the one and were not among the first rows.
    """

    run_id: str
    name: str
    task: str
    metric: str | None = None
    norm_name: str | None = None
    seed: int | None = None
    unit: str = "examples"
    units_per_example: float = 1.0
    steps_to_target: float | None = None
    is_one_row: bool = False
    status: TrialStatus = "complete"
    targets: tuple[float, ...] = ()
    lr: float | None = None
    batches: dict[float, int] = field(default_factory=dict)
    loss: Curve = field(default_factory=Curve)
    values: Curve = field(default_factory=Curve)
    norms: Norms = field(default_factory=Norms)
    has_diverged: bool = False
    times: Curve = field(default_factory=Curve)
    elapsed: Curve = field(default_factory=Curve)
    has_open_metric: bool = False
    late: dict[str, Curve] = field(default_factory=dict)
    _judged: dict[str, bool] = field(default_factory=dict)

    @property
    def seconds_per_step(self) -> float | None:
        """Mean over the steps with a time, pauses left out; None without two."""
        for curve in (self.times, self.elapsed):
            between = [
                (after - before, step - earlier)
                for (earlier, before), (step, after) in pairwise(zip(curve.steps, curve.values, strict=True))
                if after > before
            ]
            if between:
                usual = median(seconds / steps for seconds, steps in between)
                kept = [(seconds, steps) for seconds, steps in between if seconds <= PAUSE * usual * steps]
                return math.fsum(seconds for seconds, _ in kept) / sum(steps for _, steps in kept)
        return None

    def settled(self) -> "Summary":
        """The same once the run has passed by: a metric that came late is its metric."""
        if self.metric is None and self.late:
            self.metric = guessed("metric", self.late)
        if self.metric in self.late:
            self.values = self.late[self.metric]
        self.late = {}
        return self

    @property
    def batch(self) -> float | None:
        """The batch of the run; None where it has none or several."""
        return next(iter(self.batches)) if len(self.batches) == 1 else None

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same items, seen on their way."""
        for item in items:
            if isinstance(item, Measured):
                self._see_measured(item)
            elif isinstance(item, Logged):
                self._see_logged(item)
            yield item

    def _see_measured(self, item: Measured) -> None:
        if item.batch is not None and (item.batch in self.batches or len(self.batches) < MAX_POINTS):
            self.batches[item.batch] = self.batches.get(item.batch, 0) + 1
        if item.lr is not None and item.lr > (self.lr or 0.0):
            self.lr = item.lr
        self.has_diverged = self.has_diverged or bool(item.flags)
        if item.time is not None:
            self.times.add(item.step, item.time)
        if item.elapsed is not None:
            self.elapsed.add(item.step, item.elapsed)
        if item.loss is not None:
            self.loss.add(item.step, item.loss)
            if item.batch is not None:
                self.norms.see_state(item.step, item.loss, item.batch)

    def _see_logged(self, item: Logged) -> None:
        for name, value in item.values:
            if name == self.metric and math.isfinite(value):
                self.values.add(item.step, value)
            elif self.has_open_metric and math.isfinite(value) and self._may_be_metric(name):
                self.late.setdefault(name, Curve()).add(item.step, value)
            if name == self.norm_name:
                self.norms.see_norm(item.step, value)

    def _may_be_metric(self, name: str) -> bool:
        """Whether a metric that the first rows do not have is named as one that a target is set for."""
        if name not in self._judged and len(self._judged) < MAX_POINTS:
            self._judged[name] = guessed("metric", [name]) is not None
        return self._judged.get(name, False) and (name in self.late or len(self.late) < MAX_LATE_METRICS)
