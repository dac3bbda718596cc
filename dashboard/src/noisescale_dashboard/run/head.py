"""The head of a run's page: its answer in a sentence, and the key figures."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard.answers.advice import Waste
from noisescale_dashboard.answers.common import Interval, Run
from noisescale_dashboard.answers.series import NoiseScaleSeries
from noisescale_dashboard.baseline import BASELINE
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import fact, icon, note, status_dot
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import NOTHING, count, money, share, share_span, si, significant

MAX_TAGS = 6
WASTE = "run-waste-words"


def head(run: Run) -> list[Child]:
    """Status, name, and what is trained."""
    chips = [html.Span(tag, className="chip") for tag in run.tags[:MAX_TAGS]]
    if run.units_per_example != 1:
        chips.insert(0, html.Span(f"{run.example} = {count(run.units_per_example)} {run.unit}", className="chip"))
    if run.is_baseline:
        chips.insert(0, html.Span([icon("pin", "xs"), "Baseline"], className="chip baseline", title=BASELINE))
    return [
        html.Div([status_dot(run), html.H1(run.name, className="h1")], className="row"),
        *([note(run.divergence.text)] if run.divergence is not None else []),
        html.Div([html.Span(described(run)), *chips], className="row wrap t2 sub"),
        *([html.P(run.remarks, className="remarks")] if run.remarks else []),
    ]


def described(run: Run) -> str:
    """What is trained and how it is measured, in a line."""
    measured = sentences.measured_words(run)
    return trained(run) + (f" · measured from {measured}" if measured else "")


def trained(run: Run) -> str:
    """What is trained, with what, on what."""
    return " · ".join(part for part in (run.project, run.task, run.optimizer, devices(run)) if part)


def devices(run: Run) -> str | None:
    """How many of which device: "8 × H100"."""
    if not run.device:
        return None
    return f"{run.num_devices} × {run.device}" if run.num_devices and run.num_devices > 1 else run.device


def facts(run: Run, series: NoiseScaleSeries, *, is_zoomed: bool) -> Sequence[html.Div]:
    """Noise scale, batch, both efficiencies, loss, progress: each with its unit and interval, of the run's end.

    A zoomed series says nothing about the end, so trends are left out then.
    """
    since = "in use" if is_zoomed else sentences.batch_since(series)
    trend = "latest" if is_zoomed else loss_context(run, series)
    pace = run.status if is_zoomed else sentences.progress_words(run, series)
    planned = f"/ {si(run.planned_steps)} steps" if run.planned_steps else "steps"
    return [
        _noise_fact(run),
        fact("Batch", count(run.global_batch), sentences.short_noun_of(run), since, swatch="b"),
        _efficiency_fact(
            "Example efficiency", run.example_efficiency, "of an example", more=html.Div(id=WASTE, className="s")
        ),
        _efficiency_fact("Step efficiency", run.step_efficiency, "of the best"),
        fact("Loss", significant(run.loss, 4) if run.loss is not None else NOTHING, "", trend),
        fact("Progress", _progress(run.last_step), planned, pace),
    ]


def _noise_fact(run: Run) -> html.Div:
    estimate = run.noise_scale
    tone = "" if estimate.state == "resolved" else "t2" if estimate.value is not None else "dim"
    value = sentences.estimate_words(estimate)
    unit = "" if value == "not resolved" else sentences.short_noun_of(run)
    until = f"until step {count(estimate.step)} · " if run.divergence is not None and estimate.step is not None else ""
    return fact("Noise scale", value, unit, f"{until}{sentences.interval_words(estimate)}", swatch="n", tone=tone)


def _efficiency_fact(label: str, efficiency: Interval, words: str, more: Child | None = None) -> html.Div:
    between = share_span(efficiency.low, efficiency.high)
    context = f"{between} {words}" if efficiency.low is not None else "follows the noise scale"
    return fact(label, share(efficiency.value), "", context, more=more)


def redundant(waste: Waste, run: Run) -> dict[str, str] | None:
    """What was redundant so far, for the line below the example efficiency; None where nothing is known of it.

    The line is the share and what it is, in USD where there is a price; its tooltip has the interval and what it is a
    part of.
    """
    spent, part = (waste.usd, money) if waste.usd.low is not None else (waste.examples, si)
    if spent.value is None or spent.low is None or spent.high is None or not waste.fraction.value:
        return None
    noun = "" if spent is waste.usd else f" {sentences.short_noun_of(run)}"
    of_all = f"{part(spent.value)} of {part(spent.value / waste.fraction.value)}{noun}"
    return {
        "words": f"{share(waste.fraction.value)} of the data so far was redundant (≈ {part(spent.value)}{noun})",
        "title": f"Predicted: {of_all}, {share(waste.fraction.value)} (95 %: "
        f"{share_span(waste.fraction.low, waste.fraction.high)}), which smaller batches would not have needed.",
    }


def _progress(last_step: int | None) -> str:
    if last_step is None:
        return count(0)
    # the first step is step 0
    return si(last_step + 1, 4) if last_step >= 10_000 else count(last_step + 1)


def loss_context(run: Run, series: NoiseScaleSeries) -> str:
    """How far the loss moved over the last tenth of the run."""
    if run.divergence is not None:
        return f"not finite since step {count(run.divergence.step)}" if run.loss is None else "gradients not finite"
    known = [(step, v) for step, v in zip(series.points.step, series.points.loss, strict=True) if v is not None]
    if len(known) < 10:
        return "too few points for a trend"
    (before_step, before), (last_step, last) = known[-len(known) // 10], known[-1]
    sign = "−" if last < before else "+"
    return f"{sign}{significant(abs(last - before), 2)} in {si(last_step - before_step)} steps"
