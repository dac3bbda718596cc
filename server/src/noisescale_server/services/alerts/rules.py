"""What a rule watches for: whether a run, as it stands at a moment, is a case of it, and what is then said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, Literal
from uuid import UUID

from noisescale_core.advice.parts.numbers import chance
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.uncertainty import Reason, State

Kind = Literal[
    "resolved",
    "batch_off",
    "saving",
    "stalled",
    "diverged",
    "spool_growing",
    "ranks_alike",
    "trace_cov_of_rounding",
    "mentioned",
]


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """A number of a rule.

    Attributes:
        meaning: What it says.
        default: Where it is left out.
        low: Smallest, included.
        high: Largest, included.
    """

    meaning: str
    default: float
    low: float
    high: float


_MINUTES: Final = RuleSetting("minutes for which it has to be so", 30.0, 0.0, 10_080.0)
_ODDS: Final = RuleSetting("least odds that the recommended batch is cheaper", 0.8, 0.5, 0.999)

KINDS: Final[Mapping[Kind, Mapping[str, RuleSetting]]] = MappingProxyType(
    {
        "resolved": {},
        "batch_off": {
            "factor": RuleSetting("by which the batch is off at least", 2.0, 1.05, 1e6),
            "odds": _ODDS,
            "minutes": _MINUTES,
        },
        "saving": {
            "usd": RuleSetting("least expected saving over the rest of the plan", 100.0, 0.01, 1e12),
            "odds": _ODDS,
            "minutes": RuleSetting(_MINUTES.meaning, 0.0, _MINUTES.low, _MINUTES.high),
        },
        "stalled": {"minutes": RuleSetting("minutes without data", 15.0, 1.0, _MINUTES.high)},
        "diverged": {},
        "spool_growing": {
            "minutes": RuleSetting("minutes that records wait before they come", 10.0, 1.0, _MINUTES.high)
        },
        "ranks_alike": {},
        "trace_cov_of_rounding": {},
        "mentioned": {},
    }
)
"""The numbers that each kind takes."""

WORDS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "resolved": "Noise scale resolved",
        "batch_off": "Batch far off",
        "saving": "Large expected saving",
        "stalled": "Run stalled",
        "diverged": "Run diverged",
        "spool_growing": "Records wait on the training host",
        "ranks_alike": "Ranks see the same data",
        "trace_cov_of_rounding": "Gradient noise of rounding size",
        "mentioned": "Somebody is mentioned",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is watched for in a project's runs.

    Attributes:
        id: Of the rule.
        project_id: Whose runs are watched.
        kind: What for.
        settings: Its numbers, each of `KINDS`.
        again_after: A run that is a case again sooner is not told of again.
        muted_until: Until then what happens is noted and nobody is told; None: not muted.
    """

    id: UUID
    project_id: UUID
    kind: Kind
    settings: Mapping[str, float]
    again_after: timedelta = timedelta(days=1)
    muted_until: datetime | None = None

    def number(self, name: str) -> float:
        """One of the rule's numbers."""
        return self.settings.get(name, KINDS[self.kind][name].default)

    @property
    def holds_for(self) -> timedelta:
        """How long a run has to be a case before anybody is told; silence and delay say it by themselves."""
        if self.kind in ("stalled", "spool_growing") or "minutes" not in KINDS[self.kind]:
            return timedelta(0)
        return timedelta(minutes=self.number("minutes"))

    def is_muted(self, now: datetime) -> bool:
        """Whether nobody is told now."""
        return self.muted_until is not None and now < self.muted_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A run at a moment; batches and noise scales in examples, None where nothing is known.

    Attributes:
        run_id: Of the run.
        name: What it is called.
        has_ended: It has finished, or failed.
        heard: When data last came.
        state: Of its noise scale.
        value: Of its noise scale.
        batch_size: In use.
        recommended: Batch of least expected cost.
        odds: That it is cheaper.
        usd_saving: What it is expected to save over the rest of the plan.
        flags: Bits of its latest window.
        reason: Why there is no noise scale.
        diverged_step: Since which step nothing is finite; None: it is.
        delay: Between a record's making and its arrival.
    """

    run_id: UUID
    name: str
    has_ended: bool = False
    heard: datetime | None = None
    state: str | None = None
    value: float | None = None
    batch_size: float | None = None
    recommended: float | None = None
    odds: float | None = None
    usd_saving: float | None = None
    flags: int = 0
    reason: str | None = None
    diverged_step: int | None = None
    delay: timedelta | None = None


Case = Callable[[Rule, Standing, datetime], str | None]


def sentence_of(rule: Rule, run: Standing, now: datetime) -> str | None:
    """What is said of the run where it is a case of the rule; None where it is none."""
    return _CASES[rule.kind](rule, run, now)


def _resolved(_rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.state != State.RESOLVED or run.value is None:
        return None
    return f"The noise scale is resolved: {run.value:,.4g} examples."


def _batch_off(rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.has_ended or not run.batch_size or not run.recommended or (run.odds or 0.0) < rule.number("odds"):
        return None
    ratio = run.recommended / run.batch_size
    factor = max(ratio, 1 / ratio)
    if factor < rule.number("factor"):
        return None
    way = "small" if ratio > 1 else "large"
    odds = chance(run.odds or 0.0)
    return (
        f"The batch of {run.batch_size:,.4g} examples is {factor:.3g} times too {way}: {run.recommended:,.4g} is "
        f"cheaper with odds of {odds}."
    )


def _saving(rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.has_ended or run.usd_saving is None or (run.odds or 0.0) < rule.number("odds"):
        return None
    if run.usd_saving < rule.number("usd"):
        return None
    return (
        f"A batch of {run.recommended or 0:,.4g} examples is expected to save {run.usd_saving:,.2f} USD over the rest "
        f"of the plan, with odds of {chance(run.odds or 0.0)}."
    )


def _stalled(rule: Rule, run: Standing, now: datetime) -> str | None:
    if run.has_ended or run.heard is None or now - run.heard < timedelta(minutes=rule.number("minutes")):
        return None
    return f"Nothing has come for {_minutes(now - run.heard)}, and the run has not ended."


def _diverged(_rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.diverged_step is None:
        return None
    return f"Loss or gradients are not finite since step {run.diverged_step:,}."


def _spool_growing(rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.has_ended or run.delay is None or run.delay < timedelta(minutes=rule.number("minutes")):
        return None
    return f"Records come {_minutes(run.delay)} after they were made: they wait on the disk of the training host."


def _ranks_alike(_rule: Rule, run: Standing, _now: datetime) -> str | None:
    if not run.flags & Flags.REPEATED_RANKS:
        return None
    return "Two ranks or more compute the same gradients: they see the same data, and the noise scale is too small."


def _of_rounding(_rule: Rule, run: Standing, _now: datetime) -> str | None:
    if run.reason != Reason.TRACE_COV_OF_ROUNDING:
        return None
    return "tr Σ is of the size of rounding: the small batches are all but the same, and there is no noise scale."


def _mentioned(_rule: Rule, _run: Standing, _now: datetime) -> str | None:
    """None: how a run stands says nothing of comments, which tell of themselves (`mentioning.py`)."""
    return None


_CASES: Final[Mapping[Kind, Case]] = MappingProxyType(
    {
        "resolved": _resolved,
        "batch_off": _batch_off,
        "saving": _saving,
        "stalled": _stalled,
        "diverged": _diverged,
        "spool_growing": _spool_growing,
        "ranks_alike": _ranks_alike,
        "trace_cov_of_rounding": _of_rounding,
        "mentioned": _mentioned,
    }
)


def _minutes(span: timedelta) -> str:
    minutes = span.total_seconds() / 60
    return f"{minutes:,.0f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"
