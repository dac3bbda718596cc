"""Runs with their recommendations: what the overview counts, sums and says of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from noisescale_dashboard.advice import Prediction, Recommendation
from noisescale_dashboard.answers import Interval, Run
from noisescale_dashboard.decisions import CHANGES, LIKELY, UNDECIDED
from noisescale_dashboard.figures.misfit import MisfitRow
from noisescale_dashboard.number_format import count
from noisescale_dashboard.sentences import diverged_words, number_word, short_noun_of

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


def headline(judged: Sequence[Judged], total: int, *, scope: str) -> str:
    """The answer: "5 of 8 running jobs would gain from another batch size"."""
    off = sum(one.decision in CHANGES for one in judged)
    which = _which(judged, total, scope=scope)
    diverged = sum(one.run.divergence is not None for one in judged)
    if diverged:
        return f"{count(diverged)} of {which} {'has' if diverged == 1 else 'have'} diverged"
    if off == 0:
        return f"None of {which} is known to gain from another batch size"
    verb = "would gain" if scope == "running" else "would have gained"
    return f"{count(off)} of {which} {verb} from another batch size"


def is_all_running(judged: Sequence[Judged], total: int) -> bool:
    """Whether no run of the scope "running" is silent; of runs that are not judged nobody knows."""
    return total == len(judged) and all(one.run.status == "running" for one in judged)


def _which(judged: Sequence[Judged], total: int, *, scope: str) -> str:
    jobs = "running job" if is_all_running(judged, total) else "running or silent job"
    num_judged, kind = len(judged), jobs if scope == "running" else "run"
    plural = "" if num_judged == 1 else "s"
    if total > num_judged:
        return f"the {count(num_judged)} {kind}s furthest off, of {count(total)},"
    return f"{count(num_judged)} {kind}{plural}"


def lede(judged: Sequence[Judged]) -> str:
    """What is off in which direction, and what cannot be judged yet."""
    small = sum(one.decision == "increase" for one in judged)
    large = sum(one.decision == "decrease" for one in judged)
    said = []
    if small:
        said.append(f"{number_word(small)} {'is' if small == 1 else 'are'} too small and {_lose(small)} time")
    if large:
        said.append(f"{number_word(large)} {'wastes' if large == 1 else 'waste'} examples")
    likely = sum(one.decision in LIKELY for one in judged)
    if likely:
        said.append(f"{number_word(likely)} {'is' if likely == 1 else 'are'} probably off")
    first = _sentence(", ".join(said))
    parts = (_diverged_names(judged), first, _undecided_words(judged), _aside_words(judged))
    return " ".join(part for part in parts if part)


def _diverged_names(judged: Sequence[Judged]) -> str:
    runs = [one.run for one in judged if one.run.divergence is not None]
    names = ", ".join(run.name[:60] for run in runs[:MAX_NAMED]) + (", …" if len(runs) > MAX_NAMED else "")
    return _sentence(f"{diverged_words(len(runs))}: {names}") if runs else ""


def _lose(number: int) -> str:
    return "loses" if number == 1 else "lose"


def _undecided_words(judged: Sequence[Judged]) -> str:
    finite = [one for one in judged if one.run.divergence is None]
    undecided = [one for one in finite if one.decision == UNDECIDED]
    open_runs = [one for one in undecided if one.run.noise_scale.state != "resolved"]
    said = []
    if open_runs:
        needed = [one.run.noise_scale.updates_needed for one in open_runs]
        known = [updates for updates in needed if updates is not None]
        verb = "is" if len(open_runs) == 1 else "are"
        most = "a window of about" if len(open_runs) == 1 else "windows of at most about"
        cure = (
            f": {most} {count(float(f'{max(known):.2g}'))} updates would do"
            if known and len(known) == len(needed)
            else ""
        )
        said.append(f"{number_word(len(open_runs))} {verb} not resolved yet{cure}")
    others = len(undecided) - len(open_runs)
    if others:
        said.append(f"of {number_word(others)} nothing can be said: see {'its page' if others == 1 else 'their pages'}")
    return _sentence("; ".join(said))


def _aside_words(judged: Sequence[Judged]) -> str:
    """What the sums leave out, where there are sums."""
    gain, save = hours_to_gain(judged), usd_to_save(judged)
    aside = sum(savings.num_aside for savings in (gain, save))
    if not aside or not (gain.num_counted or save.num_counted):
        return ""
    verb = "is" if aside == 1 else "are"
    return _sentence(f"{number_word(aside)} of these {verb} not in the sums: not calibrated, or without plan or price")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
