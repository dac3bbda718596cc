"""Runs with their recommendations: what the overview counts, sums and says of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from noisescale_dashboard.answers.advice import Prediction, Recommendation
from noisescale_dashboard.answers.common import Interval, Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.question_fields import BALANCED
from noisescale_dashboard.figures.comparison.misfit import MisfitRow
from noisescale_dashboard.words.decisions import CHANGES, KEPT, LIKELY, UNDECIDED
from noisescale_dashboard.words.number_format import count
from noisescale_dashboard.words.sentences import diverged_words, short_noun_of

# How many runs of the scope there are, and how many are off: of all of them, not of those that are drawn.

OF_A_PAGE = ("sort", "limit")
"""What a query says of the list and not of which runs."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Runs by state and by decision.

    Attributes:
        runs: Of the scope.
        silent: Of them, those that have sent nothing for a while; 0 where the scope is not what runs.
        raised: Too small.
        lowered: Too large.
        likely: Probably off.
        kept: Fine.
        is_exact: Whether these are all; else they are the newest ones.
    """

    runs: int
    silent: int
    raised: int
    lowered: int
    likely: int
    kept: int
    is_exact: bool = True

    @property
    def off(self) -> int:
        """Worth a change."""
        return self.raised + self.lowered

    @property
    def unsure(self) -> int:
        """Those of which it is too early to say anything."""
        return max(self.runs - self.off - self.likely - self.kept, 0)


async def totals(
    api: ApiClient, visitor: Mapping[str, str], asked: Mapping[str, Any], *, runs: int, preference: float
) -> Totals | None:
    """Counts by the server's own decisions, in one request; None where the reader's preference is not theirs.

    Args:
        api: Asked for the runs by decision.
        visitor: On whose behalf.
        asked: The query of the scope.
        runs: How many match it.
        preference: Of the reader.

    Raises:
        ApiProblem: When the API does not answer.
    """
    if preference != BALANCED:
        return None
    which = {name: value for name, value in asked.items() if name not in OF_A_PAGE}
    found = await api.run_groups(visitor, {**which, "by": "decision"})
    groups = {group.value: group for group in found.groups}

    def count(*decisions: str) -> int:
        return sum(groups[one].num_runs for one in decisions if one in groups)

    silent = sum(group.num_silent for group in groups.values()) if asked.get("status") else 0
    runs = max(runs, sum(group.num_runs for group in groups.values()))
    kept, likely = count(*KEPT), count(*LIKELY)
    return Totals(runs, silent, count("increase"), count("decrease"), likely, kept, found.is_exact)


MAX_NAMED = 3
"""Diverged runs that are named."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A run and what is recommended for it; None where the recommendation could not be read."""

    run: Run
    advice: Recommendation | None

    @property
    def decision(self) -> str:
        """The word of the recommendation; that of the list may wait for the rest of a look."""
        return self.advice.decision if self.advice is not None else UNDECIDED

    @property
    def is_calibrated(self) -> bool:
        """Whether a sweep or branch ties the noise scale of this run to a critical batch."""
        return self.advice is not None and self.advice.calibration.state == "calibrated"


@dataclass(frozen=True, slots=True)
class Savings:
    """A sum of predicted savings over resolved and calibrated runs.

    Attributes:
        total: Value and ends; the ends are those of all runs erring to one side. Empty where nothing is counted.
        num_counted: Runs in it.
        num_aside: Runs worth a change that are not in it: not calibrated, or without plan, step times or price.
    """

    total: Interval
    num_counted: int
    num_aside: int


def misfit_row(judged: Judged) -> MisfitRow | None:
    """A row of the misfit figure; None without a batch, without anything to compare it with, or after a divergence."""
    run, advice = judged.run, judged.advice
    if not run.global_batch or run.divergence is not None:
        return None
    row = MisfitRow(run.id, run.name, short_noun_of(run), run.global_batch, decision=UNDECIDED)
    if advice is not None and advice.recommended_batch_size:
        return replace(
            row,
            decision=advice.decision,
            best=advice.recommended_batch_size,
            low=advice.interval.low,
            high=advice.interval.high,
            statistical_low=advice.statistical_interval.low,
            statistical_high=advice.statistical_interval.high,
        )
    if run.noise_scale.value is None and run.noise_scale.low:
        return replace(row, bound=run.noise_scale.low)
    return None


def hours_to_gain(judged: Sequence[Judged]) -> Savings:
    """Hours by which raised batches end the rest of their plans sooner."""
    return _savings(judged, "increase", lambda prediction: prediction.hours)


def usd_to_save(judged: Sequence[Judged]) -> Savings:
    """USD that lowered batches save over the rest of their plans."""
    return _savings(judged, "decrease", lambda prediction: prediction.usd)


def _savings(judged: Iterable[Judged], decision: str, quantity: Callable[[Prediction], Interval]) -> Savings:
    worth_it = [one for one in judged if one.decision == decision]
    found = [_saved(one, quantity) for one in worth_it]
    counted = [saved for saved in found if saved is not None]
    if not counted:
        return Savings(Interval(), 0, len(worth_it))
    value, low, high = (sum(part) for part in zip(*counted, strict=True))
    return Savings(Interval(value, low, high, 0.95), len(counted), len(worth_it) - len(counted))


def _saved(one: Judged, quantity: Callable[[Prediction], Interval]) -> tuple[float, float, float] | None:
    """Present minus recommended with its ends: the plan at the present batch is known, it is what was planned."""
    if one.advice is None or not one.is_calibrated or one.run.noise_scale.state != "resolved":
        return None
    now = one.advice.predictions.now
    then = one.advice.predictions.then
    if now is None or then is None:
        return None
    before, after = quantity(now), quantity(then)
    if before.value is None or after.value is None or after.low is None or after.high is None:
        return None
    return before.value - after.value, before.value - after.high, before.value - after.low


def headline(judged: Sequence[Judged], total: int, *, scope: str, totals: Totals | None = None) -> str:
    """The answer: "1 of 17 running jobs should change its batch size"."""
    diverged = sum(one.run.divergence is not None for one in judged)
    is_sample = total > len(judged) and totals is not None and totals.off > 0
    if diverged and not is_sample:
        return (
            f"{count(diverged)} of {_which(judged, total, scope=scope)} {'has' if diverged == 1 else 'have'} diverged"
        )
    off = totals.off if totals is not None else sum(one.decision in CHANGES for one in judged)
    which = _which(judged, total, scope=scope) if totals is None else _all(total, scope, totals.silent)
    if totals is not None and not totals.is_exact:
        which = f"the newest {which}"
    if off == 0:
        return f"None of {which} is known to need another batch size"
    its = "its" if off == 1 else "their"
    verb = "should change" if scope == "running" else "should have had another batch size"
    return (
        f"{count(off)} of {which} {verb} {its} batch size" if scope == "running" else f"{count(off)} of {which} {verb}"
    )


def _all(total: int, scope: str, silent: int) -> str:
    kind = "run" if scope != "running" else "running or silent job" if silent else "running job"
    return f"{count(total)} {kind}{'' if total == 1 else 's'}"


def _which(judged: Sequence[Judged], total: int, *, scope: str) -> str:
    silent = sum(one.run.status == "silent" for one in judged)
    if total > len(judged):
        return f"the {count(len(judged))} furthest off, of {_all(total, scope, silent)},"
    return _all(total, scope, silent)


def lede(judged: Sequence[Judged], totals: Totals | None = None) -> str:
    """How many are too small, too large, unsure and fine: "1 too large · 3 unsure · 3 fine"."""
    words = [one.decision for one in judged]
    found = totals or Totals(
        len(judged),
        0,
        words.count("increase"),
        words.count("decrease"),
        sum(word in LIKELY for word in words),
        sum(word in KEPT for word in words),
    )
    counts = (
        (found.raised, "too small"),
        (found.lowered, "too large"),
        (found.likely, "probably off"),
        (found.unsure, "unsure"),
        (found.kept, "fine"),
    )
    said = " · ".join(f"{count(number)} {word}" for number, word in counts if number)
    return " ".join(part for part in (_diverged_names(judged), said) if part)


def _diverged_names(judged: Sequence[Judged]) -> str:
    runs = [one.run for one in judged if one.run.divergence is not None]
    names = ", ".join(run.name[:60] for run in runs[:MAX_NAMED]) + (", …" if len(runs) > MAX_NAMED else "")
    words = diverged_words(len(runs))
    return f"{words[0].upper()}{words[1:]}: {names}." if runs else ""
