"""The noise scale of the latest window, in the job itself and as people read it."""

import itertools
import math
from collections import deque
from dataclasses import dataclass

from noisescale.estimators.noise_scale import Terms
from noisescale.estimators.uncertainty import NoiseScaleEstimate, Reason, estimate
from noisescale.estimators.windows import WindowSums

MAX_UPDATES = 256
MAX_BLOCKS = 16
MIN_UPDATES = 8
WINDOW_SHARE = 0.05
"""Longer windows read low: |G|² falls fast early in a run."""


@dataclass(frozen=True, slots=True)
class NoiseScale:
    """B_simple of the latest window; printed, it is a sentence.

    Attributes:
        estimate: Value, interval and state, in examples.
        num_updates: Updates with an estimate in the whole run.
        example: What is sampled independently, in the singular.
        unit: What it is shown in.
        units_per_example: Units in one example.
    """

    estimate: NoiseScaleEstimate
    num_updates: int
    example: str = "example"
    unit: str = "examples"
    units_per_example: float = 1.0

    @property
    def value(self) -> float | None:
        """B_simple in examples; None while unresolved."""
        return self.estimate.value

    @property
    def state(self) -> str:
        """One of "resolved", "tentative" and "unresolved"."""
        return self.estimate.state

    def __str__(self) -> str:
        now = self.estimate
        examples = self.example if self.example.endswith("s") else f"{self.example}s"
        if now.value is None or now.low is None or now.high is None or now.z is None:
            return f"not resolved yet: {self._what_is_missing(examples)}"
        in_units = (
            f" = {readable(now.value * self.units_per_example)} {self.unit}" if self.units_per_example != 1 else ""
        )
        interval = f"[{readable(now.low)}, {readable(now.high)}]"
        return f"{readable(now.value)} {examples} {interval}{in_units}, z = {now.z:.1f}, {now.state}"

    def _what_is_missing(self, examples: str) -> str:
        now = self.estimate
        if now.reason == Reason.NO_ESTIMATES:
            return "no step with two small batches so far"
        if now.reason == Reason.TOO_FEW_UPDATES:
            return f"{now.num_updates} of {MIN_UPDATES} updates"
        parts = [] if now.low is None else [f"> {readable(now.low)} {examples}"]
        more = None if now.updates_needed is None else math.ceil(now.updates_needed / WINDOW_SHARE) - self.num_updates
        if more is not None and more > 0:
            parts.append(f"about {readable(more)} more steps")
        return ", ".join(parts) or str(now.reason).replace("_", " ")


def readable(count: float) -> str:
    """A count to three digits: 7.25, 3180, 3.3 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(count) >= size:
            return f"{count / size:.1f} {letter}"
    if abs(count) < 1:
        return f"{count:.2g}"
    digits = 2 - math.floor(math.log10(abs(count)))
    return f"{round(count, digits):.{max(0, digits)}f}" if abs(count) < 100 else f"{round(count, digits):.0f}"


class RecentUpdates:
    """The terms of the last 256 updates."""

    def __init__(self) -> None:
        self._terms: deque[Terms] = deque(maxlen=MAX_UPDATES)
        self.num_updates = 0

    def add(self, terms: Terms) -> None:
        """Add one update."""
        self._terms.append(terms)
        self.num_updates += 1

    def estimate(self) -> NoiseScaleEstimate:
        """The noise scale of the last 5 % of the updates, at least 8 of them, in up to 16 blocks."""
        wanted = max(MIN_UPDATES, math.ceil(WINDOW_SHARE * self.num_updates))
        window = list(self._terms)[-wanted:]
        num_blocks = min(MAX_BLOCKS, len(window))
        edges = [round(block * len(window) / num_blocks) for block in range(num_blocks + 1)] if num_blocks else []
        blocks = (window[start:end] for start, end in itertools.pairwise(edges))
        return estimate(
            WindowSums.from_blocks(
                (len(block), sum(t.trace_cov for t in block), sum(t.grad_sq_norm for t in block)) for block in blocks
            )
        )
