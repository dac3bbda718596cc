"""A recommendation as a caller of the SDK gets it: the answer, who gave it, and a short text when printed."""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from noisescale.notices.readable import several
from noisescale.shown import recommendation_card
from noisescale_core.advice import answer as core
from noisescale_core.advice.parts.numbers import chance

if TYPE_CHECKING:
    from noisescale_core.advice.limits.predictions import Banded
    from noisescale_core.advice.parts.parts import Interval
    from noisescale_core.advice.plan import Schedule

WIDTH = 110
LABEL = 15
SOURCES = {
    "server": "the server",
    "job": "this job's own measurements",
    "published": "published sweeps",
}
MAX_STAGES = 6
"""Stages of a schedule that are printed; all of them are in `schedule`."""

Source = Literal["server", "job", "published", "nowhere"]

Writer = Callable[[str], str]
"""From a trainer's name to the schedule in its words, or to a sentence why there is none."""

NO_WRITER = "a schedule needs a recommendation first"


# A recommendation as people read it: the decision first, then why, what goes with it, what it buys, what is next.


def as_text(found: "Recommendation") -> str:
    """The recommendation in a few lines."""
    indent = " " * (LABEL + 2)
    lines = [
        textwrap.fill(
            f"  {label:<{LABEL}}{content}", WIDTH, subsequent_indent=indent, break_long_words=False,
            break_on_hyphens=False,
        )
        for label, content in parts(found)
    ]  # fmt: skip
    return "\n".join([_headline(found), *lines])


def _headline(found: "Recommendation") -> str:
    """The decision and how sure it is: "Lower the batch to 192 · likely (92 %)"."""
    if found.sureness is None or found.odds is None:
        return found.headline
    return f"{found.headline} · {found.sureness} ({chance(found.odds.probability)})"


def parts(found: "Recommendation") -> list[tuple[str, str]]:
    """What is said below the headline: names and sentences, in their order.

    Args:
        found: To say.
    """
    labels: dict[str, str] = {}
    for label, content in _parts(found):
        if content:
            labels.setdefault(content, label)  # what is said once is not said again under another name
    return [(label, content) for content, label in labels.items()]


def _parts(found: "Recommendation") -> Iterator[tuple[str, str | None]]:
    yield "in short", found.short_reason
    yield "why", found.reason
    yield "batch", _batch(found)
    yield "learning rate", _learning_rate(found)
    for change in found.rescaling or ():
        if change.field != "learning_rate" and change.after is not None and change.after != change.before:
            yield change.field, f"{change.before:.4g} → {change.after:.4g} ({change.rule})"
    yield "schedule", found.schedule_missing if found.schedule is None else _schedule(found.schedule)
    yield "effect", found.effect
    yield from _asked_batches(found)
    yield "waste so far", _waste(found)
    if found.limited is not None and (found.limited.binding or found.limited.batch_size is None):
        yield "limits", found.limited.text
    for caution in found.warnings:
        yield "careful", caution.text
    yield "next", found.next_step
    for sentence in found.missing:
        yield "not known here", sentence
    if found.source in SOURCES:
        yield "from", _source(found)
    elif found.note and found.note not in (found.reason or ""):
        yield "no answer", found.note


def _batch(found: "Recommendation") -> str | None:
    if found.recommended_batch_size is None or found.interval is None:
        return None
    now = "" if found.current_batch_size is None else f"{_number(found.current_batch_size)} → "
    to = f"{now}{_number(found.recommended_batch_size)} {several(found.example)}"
    in_units = ""
    if found.units_per_example != 1:
        in_units = f" = {_number(found.recommended_batch_size * found.units_per_example)} {found.unit}"
    parts = f"best {_number(found.interval.value)}, {_interval(found.interval)}"
    if found.statistical_interval is not None:
        alone = found.statistical_interval
        parts += f"; of the measurement alone {_number(alone.low)} – {_number(alone.high)}"
    return f"{to}{in_units} ({parts})"


def _learning_rate(found: "Recommendation") -> str | None:
    rate = found.learning_rate
    if rate is None:
        return None
    return f"{rate.current:.4g} → {rate.recommended:.3g} ({rate.low:.3g} – {rate.high:.3g}); {rate.text}"


def _schedule(schedule: "Schedule") -> str:
    shown = "; ".join(
        f"{_number(stage.batch_size)} from step {stage.step:,}"
        + ("" if stage.learning_rate is None else f", lr {stage.learning_rate:.3g}")
        for stage in schedule.stages[:MAX_STAGES]
    )
    left_out = len(schedule.stages) - MAX_STAGES
    return f"{shown}{f'; {left_out} more stages' if left_out > 0 else ''}. {schedule.why}"


def _asked_batches(found: "Recommendation") -> Iterator[tuple[str, str]]:
    """The rest of the plan at the batches that were asked for besides."""
    for one in found.predictions.batches if found.predictions else ():
        if not one.is_present and not one.is_recommended:
            units = ((one.steps, "steps"), (one.hours, "h"), (one.usd, "USD"))
            yield f"at {_number(one.batch_size)}", ", ".join(_banded(value, unit) for value, unit in units if value)


def _banded(value: "Banded", unit: str) -> str:
    return f"{_number(value.value)} {unit} ({_number(value.low)} – {_number(value.high)})"


def _waste(found: "Recommendation") -> str | None:
    if found.waste is None:
        return None
    share = found.waste.fraction
    usd = "" if found.waste.usd is None else f", {_number(found.waste.usd.value)} USD"
    examples = f"{_number(found.waste.examples.value)} {several(found.example)}"
    interval = f"{_percent(share.value)} of those spent ({_percent(share.low)} – {_percent(share.high)})"
    return f"{examples}, {interval}{usd}; {found.waste.text}"


def _source(found: "Recommendation") -> str:
    where = SOURCES[found.source]
    step = "" if found.step is None else f", step {found.step:,}"
    return f"{where}{step}{f'; {found.note}' if found.note else ''}"


def _interval(interval: "Interval") -> str:
    return f"{_percent(interval.level)} interval {_number(interval.low)} – {_number(interval.high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _number(value: float) -> str:
    """Three digits, or all of a whole number below a million."""
    if value == round(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation(core.Recommendation):
    """Which batch size now, why, how sure, and what it would change; print it.

    Its fields are those of `noisescale_core.advice.answer.Recommendation` and of `docs/rest.md`, and these:

    Attributes:
        source: "server"; "job", computed here; "published", from published sweeps alone; "nowhere": there is no answer,
            and `reason` says why.
        note: Why the server did not answer, where it did not.
        missing: What this answer does not hold, and why.
        course: Noise scales along the run as this job has measured it, oldest first; None where it knew none.
        said: The JSON of a server, also what this version knows nothing of; None where none answered.
        writer: Writes the schedule in a trainer's words.
    """

    source: Source = "nowhere"
    note: str | None = None
    missing: tuple[str, ...] = ()
    course: tuple[float | None, ...] = field(default=(), repr=False, compare=False)
    said: Mapping[str, object] | None = field(default=None, repr=False, compare=False)
    writer: Writer | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, found: core.Recommendation, **more: Any) -> "Recommendation":
        """The answer with who gave it.

        Args:
            found: The answer.
            more: Fields of this class.
        """
        return cls(**{one.name: getattr(found, one.name) for one in fields(core.Recommendation)}, **more)

    @property
    def answer(self) -> Mapping[str, object]:
        """Everything that was said, by the names of `docs/rest.md`; read anew at each call."""
        if self.said is not None:
            return self.said
        own = {one.name for one in fields(core.Recommendation)}
        return {name: value for name, value in asdict(self).items() if name in own}

    def flags(self, trainer: str) -> str:
        """The schedule in a trainer's words; a comment that says why, where there is none.

        Args:
            trainer: "megatron", "torchtitan", "nanogpt" or "huggingface".
        """
        if self.writer is None:
            return f"# no flags for {trainer}: {self.schedule_missing or self.reason or NO_WRITER}\n"
        return self.writer(trainer)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        """The recommendation as a notebook shows it."""
        return recommendation_card(self, parts(self))
