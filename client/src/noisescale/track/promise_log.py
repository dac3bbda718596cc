"""What a run's updates have promised: looks at updates, put together with the terms of the steps that they are of."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale.rows.updates import MAX_TERM, LoggedStep, update_from_norms
from noisescale_core.estimators.path import Promised
from noisescale_core.estimators.promise import (
    LossMoment,
    PromiseMoment,
    promised_fall,
    scale_of,
    signal_of_one,
    stretch_of_promises,
)

if TYPE_CHECKING:
    from noisescale.capture.path.promise import PromiseLook
    from noisescale.capture.sums.step_norms import StepNorms

KEPT_STEPS = 512
"""Steps whose terms wait for a look: looks come after their steps, late on an accelerator."""

FEWEST_STEPS = 5
"""Of an optimizer, from which on its divisor is used; where the device counts them, capture cannot know."""

MOST_MOMENTS = 512
"""Of a run; of more every second one is forgotten."""

NOTHING = Promised()


class PromiseLog:
    """Adds up what updates promise.

    Attributes:
        total: So far, up to the last update that was looked at.
        moments: What it was at looks, oldest first.
    """

    def __init__(self) -> None:
        self.total = NOTHING
        self.moments: list[PromiseMoment] = []
        self._steps: deque[tuple[LoggedStep, StepNorms]] = deque(maxlen=KEPT_STEPS)
        self._looks: deque[PromiseLook] = deque()
        self._last: tuple[int, float] | None = None
        self._first = 0

    def see(self, arrived: "Sequence[tuple[LoggedStep, StepNorms]]") -> None:
        """Take what steps told of their gradients."""
        self._steps += [step for step in arrived if step[0].is_measured]

    def add(self, looks: "Sequence[PromiseLook]") -> None:
        """Take looks that have arrived."""
        self._looks.extend(looks)

    def settle(self, number_of: Callable[[int], int], *, is_last: bool = False) -> list[PromiseMoment]:
        """What is new: the promise of the updates up to one that was looked at, since the one before.

        Args:
            number_of: From the number of an update to that of its step.
            is_last: No more steps will come.
        """
        found = []
        while self._looks and (is_last or (self._steps and self._steps[-1][0].num_steps >= self._looks[0].num_steps)):
            look = self._looks.popleft()
            promised = self._promise_of(look)
            if promised is not None and look.number >= self._first:
                step = number_of(look.number)
                found.append(PromiseMoment(step, self._extend(look.number, promised)))
                self._remember(step)
        return found

    def _remember(self, step: int) -> None:
        self.moments.append(PromiseMoment(step, self.total))
        if len(self.moments) >= MOST_MOMENTS:
            # the newest stays, as it is what the next one is on a line with
            del self.moments[-2::-2]

    def begin_again(self, number: int) -> None:
        """The parameters were changed by something else: nothing before this update counts."""
        self.total, self._last, self._first = NOTHING, None, number
        self.moments = []

    def go_on_from(self, total: Promised) -> None:
        """An earlier process has seen so much."""
        self.total = total

    def _extend(self, number: int, promised: float) -> Promised:
        last, self._last = self._last, (number, promised)
        between = 0 if last is None else number - last[0] - 1
        new = stretch_of_promises(before=None if last is None else last[1], now=promised, num_between=between)
        before = self.total
        self.total = Promised(
            before.num_updates + new.num_updates, before.total + new.total, before.variance + new.variance
        )
        return new

    def _promise_of(self, look: "PromiseLook") -> float | None:
        step = next((one for one in reversed(self._steps) if one[0].num_steps == look.num_steps), None)
        if step is None:
            return None
        logged, norms = step
        scale = scale_of(look.sq_norm, norms.big_sq_norms[0]) if norms.big_sq_norms else None
        if scale is None or look.steps < FEWEST_STEPS:
            return None
        signal: float | None = None
        if look.weight is not None:
            terms = update_from_norms(logged, norms).terms
            signal = None if terms is None else look.weight * terms.grad_sq_norm
        elif norms.in_metric is not None and norms.adds_up:
            signal = signal_of_one(look.own / scale**2, *norms.in_metric)
        if signal is None:
            return None
        found = promised_fall(rate=look.rate, past=look.past, scale=scale, signal=signal)
        return found if abs(found) < MAX_TERM else None  # which what is not a number is not


class LossMoments:
    """The losses of a run's steps, at moments that stay about as far apart as the run grows.

    Attributes:
        so_far: Oldest first.
    """

    def __init__(self) -> None:
        self.so_far: list[LossMoment] = []
        self._every, self._num_since = 1, 0
        self._num_losses, self._total = 0, 0.0

    def add(self, step: int, loss: float | None) -> None:
        """Take a step that was recorded.

        Args:
            step: Its number.
            loss: Finite, or None.
        """
        if loss is not None:
            self._num_losses += 1
            self._total += loss
        self._num_since += 1
        if self._num_since < self._every:
            return
        self._num_since = 0
        self.so_far.append(LossMoment(step, self._num_losses, self._total))
        if len(self.so_far) >= MOST_MOMENTS:
            del self.so_far[1::2]
            self._every *= 2

    def since(self, step: int) -> list[LossMoment]:
        """From a step on.

        Args:
            step: Its number.
        """
        return [one for one in self.so_far if one.step >= step]
