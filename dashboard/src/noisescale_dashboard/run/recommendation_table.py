"""What the batch in use and the recommended one take for the rest of the plan, side by side."""

from collections.abc import Callable

from dash import html

from noisescale_dashboard.answers.advice import NowAndThen, Prediction, Recommendation
from noisescale_dashboard.answers.common import Interval, Run
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import (
    NOTHING,
    THIN_RANGE,
    change,
    change_span,
    count,
    duration,
    money,
    share,
    share_span,
    si,
    significant,
    unbroken,
)

SECONDS_PER_HOUR = 3600


def at_a_glance(advice: Recommendation, run: Run) -> list[tuple[str, Child]]:
    """Two rows for a reader in a hurry: time and cost of the rest, or steps and examples where neither is known."""
    now, then = advice.predictions.now, advice.predictions.then
    noun = sentences.noun_of(run).capitalize()
    factors = [("Steps", advice.predicted.steps_factor), (noun, advice.predicted.examples_factor)]
    by_factor: list[tuple[str, Child]] = [
        (label, _with_interval(change(one.value), _factor_span(one), _tone(one.value))) for label, one in factors
    ]
    if now is None or then is None:
        return by_factor
    time = _instead("Time left", now.hours, then.hours, _hours)
    cost = _instead("Cost left", now.usd, then.usd, money)
    return [*(time or by_factor[:1]), *(cost or by_factor[1:])]


def why_no_time(advice: Recommendation) -> str | None:
    """Why the rows say steps and not hours, where the present batch has hours and no other one; None where they do."""
    now, then = advice.predictions.now, advice.predictions.then
    if now is None or then is None or now.hours.value is None or then.hours.value is not None:
        return None
    return "Time unknown: only one batch has been timed."


def _instead(label: str, now: Interval, then: Interval, shown: Callable[[float], str]) -> list[tuple[str, Child]]:
    if now.value is None or then.value is None:
        return []
    tone = _tone(then.value / now.value if now.value else None)
    return [(label, _with_interval(f"{shown(now.value)} → {shown(then.value)}", "", tone))]


def _with_interval(value: str, between: str, tone: str) -> Child:
    return html.Span([html.Span(between, className="between"), html.B(value, className=tone)], className="num")


def now_and_then(advice: Recommendation, run: Run) -> list[Child]:
    """The table and what it assumes.

    With a plan it says what is left in steps, units, hours and USD; without one only the factors between the batches.
    A row that nobody has data for, such as USD without a price, is left out.
    """
    now, best = count(advice.current_batch_size), count(advice.recommended_batch_size)
    head = html.Tr([html.Th(word, scope="col") for word in ("To the same loss", f"now {now}", f"at {best}")])
    rows = _left(advice, run) or _factors(advice, run)
    rows += [
        _share_row("Example efficiency", advice.example_efficiency),
        _share_row("Step efficiency", advice.step_efficiency),
    ]
    table = html.Table([html.Thead(head), html.Tbody(rows)], className="tb advice")
    said = [_by_what(advice), *([_missing(advice), advice.predictions.assumes] if advice.predictions.batches else [])]
    return [table, *(html.P(unbroken(text), className="dim small") for text in said if text)]


def _by_what(advice: Recommendation) -> str | None:
    """What the rows go by, where the efficiencies are not the ratios of the steps and examples above them."""
    kappa = advice.calibration.kappa.value
    if kappa is None or kappa == 1 or advice.example_efficiency.now.value is None:
        return None
    return (
        "Efficiencies go by the noise scale alone. Steps and examples go by the critical batch, κ times as large: "
        f"κ\u00a0{significant(kappa)}."
    )


def _left(advice: Recommendation, run: Run) -> list[html.Tr]:
    now = advice.predictions.now
    then = advice.predictions.then
    if now is None or then is None or then.steps.value is None:
        return []
    lines: tuple[tuple[str, Callable[[Prediction], Interval], Callable[[float], str]], ...] = (
        ("Steps left", lambda one: one.steps, si),
        (f"{run.unit.capitalize()} left", lambda one: one.units, si),
        ("Time left", lambda one: one.hours, _hours),
        ("Cost left", lambda one: one.usd, money),
    )
    return [_left_row(label, of(now), of(then), shown) for label, of, shown in lines if of(then).value is not None]


def _left_row(label: str, now: Interval, then: Interval, shown: Callable[[float], str]) -> html.Tr:
    factor = then.value / now.value if then.value is not None and now.value else None
    between = NOTHING
    if then.low is not None and then.high is not None:
        between = f"{shown(then.low)}{THIN_RANGE}{shown(then.high)}"
    return _row(
        label,
        NOTHING if now.value is None else shown(now.value),
        NOTHING if then.value is None else shown(then.value),
        between,
        _tone(factor),
    )


def _hours(value: float) -> str:
    return duration(SECONDS_PER_HOUR * value)


def _missing(advice: Recommendation) -> str | None:
    # the answer leaves both empty for exactly these reasons
    now, then = advice.predictions.now, advice.predictions.then
    if then is None or then.usd.value is not None:
        return None
    if now is not None and now.hours.value is not None and then.hours.value is None:
        # what is assumed says why the time of another batch is not known
        return None
    if then.hours.value is None:
        return "Hours are not known: the run has sent no step times."
    return "Cost unknown: no device price was given for this run."


def _factors(advice: Recommendation, run: Run) -> list[html.Tr]:
    noun = sentences.noun_of(run).capitalize()
    return [
        _factor_row("Steps, predicted", advice.predicted.steps_factor),
        _factor_row(f"{noun}, predicted", advice.predicted.examples_factor),
    ]


def _factor_row(label: str, factor: Interval) -> html.Tr:
    return _row(label, "1 ×", change(factor.value), _factor_span(factor), _tone(factor.value))


def _factor_span(factor: Interval) -> str:
    return NOTHING if factor.low is None or factor.high is None else change_span(factor.low, factor.high)


def _tone(factor: float | None) -> str:
    return "" if factor is None or factor == 1 else "dn" if factor < 1 else "up"


def _share_row(label: str, pair: NowAndThen) -> html.Tr:
    now, then = pair.now, pair.recommended
    within = "" if now.low is None else share_span(now.low, now.high)
    return _row(label, share(now.value), share(then.value), share_span(then.low, then.high), within=within)


def _row(label: str, now: str, then: str, between: str, tone: str = "", *, within: str = "") -> html.Tr:
    at_present: list[Child] = [now, *([html.Span(within, className="between")] if within else [])]
    value = html.Td([html.B(then, className=tone), html.Span(between, className="between")])
    return html.Tr([html.Th(label, scope="row"), html.Td(at_present), value])
