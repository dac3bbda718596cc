"""The optimizer step that runs: idle, measured or logged, and what leads from one to the next.

begin ──▶ Idle ───────────────────── log ──▶ Logged ──▶ (the next step begins)
begin ──▶ Measuring ── gather … ──── log ──▶ Logged
              ▲                                │  the gradients were cleared, and no optimizer step was made:
              └──────────── start_anew ────────┘  an AMP scaler skipped it, or the loop itself
"""

from dataclasses import dataclass, replace

from torch import Tensor

from noisescale.capture.step.gathered import Gathered
from noisescale.capture.step.section import Section
from noisescale.capture.sums.held_rows import HeldNorms


@dataclass(frozen=True, slots=True)
class Idle:
    """The step is not measured, and not logged yet.

    Attributes:
        gathered: What the next measured step begins with: no small batch.
        may_pass: No step before it is on its way but those held, so it can be logged in passing.
    """

    gathered: Gathered
    may_pass: bool


@dataclass(frozen=True, slots=True)
class Measuring:
    """The step is measured, and not logged yet.

    Attributes:
        gathered: Its small batches so far.
        follows_logged: It follows a logged step that no optimizer step has ended, and is not numbered yet.
    """

    gathered: Gathered
    follows_logged: bool = False


@dataclass(frozen=True, slots=True)
class Logged:
    """The step was logged, and nothing has happened since that makes it another one.

    Attributes:
        gathered: Its small batches.
        norms: Σ |s|² of each and |ḡ|² of the gradient that the optimizer will see, [K + 1, C]; None where these were
            not measured, are multiplied by a loss scaler's scale, or the gradient has more small batches by now.
    """

    gathered: Gathered
    norms: Tensor | HeldNorms | None = None


State = Idle | Measuring | Logged


class Step:
    """Holds the state of the step and the section of the loop; they change here and nowhere else.

    Args:
        gathered: What the first step begins with.

    Attributes:
        section: What a backward pass counts for that ends now; changed by `mark()` and `ignore()` alone. A plain
            attribute, as each gradient asks for it.
    """

    def __init__(self, gathered: Gathered) -> None:
        self._state: State = Measuring(gathered)
        self.section = Section()

    @property
    def state(self) -> State:
        """Idle, measuring or logged."""
        return self._state

    @property
    def gathered(self) -> Gathered:
        """The small batches so far."""
        return self._state.gathered

    @property
    def is_logged(self) -> bool:
        """Whether the step was logged."""
        return isinstance(self._state, Logged)

    @property
    def norms(self) -> Tensor | HeldNorms | None:
        """Those of a step that was logged; see `Logged`."""
        return self._state.norms if isinstance(self._state, Logged) else None

    # ---- the step

    def begin(self, gathered: Gathered) -> None:
        """An optimizer step has ended; the next is measured."""
        self._state = Measuring(gathered)

    def rest(self, *, may_pass: bool) -> None:
        """An optimizer step has ended; the next is not measured.

        Args:
            may_pass: No step before it is on its way but those held.
        """
        self._state = Idle(self._state.gathered, may_pass)

    def start_anew(self, gathered: Gathered) -> None:
        """The gradients were cleared: what comes now belongs to another step, with the same number or the next."""
        state = self._state
        if isinstance(state, Idle):
            self._state = Idle(gathered, state.may_pass)
        else:
            self._state = Measuring(gathered, isinstance(state, Logged) or state.follows_logged)

    def gather(self, gathered: Gathered) -> None:
        """More is known of the small batches."""
        state = self._state
        if isinstance(state, Measuring):
            self._state = Measuring(gathered, state.follows_logged)
        elif isinstance(state, Logged) and gathered is not state.gathered:
            self._state = Logged(gathered)  # the norms are those of the gradient before

    def log(self, norms: Tensor | HeldNorms | None = None) -> None:
        """The step is logged with these norms; see `Logged`."""
        self._state = Logged(self._state.gathered, norms)

    def number(self) -> bool:
        """Whether this step counts as one more, because a logged one before it has had no end; true once."""
        state = self._state
        if not (isinstance(state, Measuring) and state.follows_logged):
            return False
        self._state = Measuring(state.gathered)
        return True

    # ---- the section

    def mark(self, is_marked: bool) -> None:
        """All backward passes from here on are one small batch, or no longer."""
        self.section = replace(self.section, is_marked=is_marked)

    def ignore(self, is_ignored: bool) -> None:
        """Backward passes from here on are left out, or no longer."""
        self.section = replace(self.section, is_ignored=is_ignored)
