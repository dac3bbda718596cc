"""The head of a run's page: its answer in a sentence, and the key figures."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard import sentences
from noisescale_dashboard.answers import NoiseScaleSeries, Run
from noisescale_dashboard.number_format import count, share, share_span, si, significant
from noisescale_dashboard.pages.parts import Child, fact, status_dot

MAX_TAGS = 6


def head(run: Run) -> list[Child]:
    """Status, name, what is trained, and the answer."""
    said = [run.project, run.task, run.optimizer, _devices(run)]
    config = " · ".join(part for part in said if part)
    chips = [html.Span(tag, className="chip") for tag in run.tags[:MAX_TAGS]]
    if run.units_per_example != 1:
        chips.insert(0, html.Span(f"{run.example} = {count(run.units_per_example)} {run.unit}", className="chip"))
    return [
        html.Div([status_dot(run.status), html.H1(run.name, className="h1")], className="row"),
        html.Div([html.Span(config), *chips], className="row wrap t2 sub"),
        html.P(sentences.answer(run), className="lede"),
    ]


def _devices(run: Run) -> str | None:
    if not run.device:
        return None
    return f"{run.num_devices} × {run.device}" if run.num_devices and run.num_devices > 1 else run.device


def facts(run: Run, series: NoiseScaleSeries, *, is_zoomed: bool) -> Sequence[html.Div]:
    """Noise scale, batch, both efficiencies, loss, progress: each with its unit and interval, of the run's end.

    A zoomed series says nothing about the end, so trends are left out then.
    """
    unit = sentences.short_noun_of(run)
    estimate = run.noise_scale
    tone = "" if estimate.state == "resolved" else "t2" if estimate.value is not None else "dim"
    value = sentences.estimate_words(estimate)
    planned = f"/ {si(run.planned_steps)}" if run.planned_steps else ""
    return [
        fact(
            "Noise scale",
            value,
            "" if value == "not resolved" else unit,
            sentences.interval_words(estimate),
            swatch="n",
            tone=tone,
        ),
        fact(
            "Batch", count(run.global_batch), unit, "in use" if is_zoomed else sentences.batch_since(series), swatch="b"
        ),
        fact(
            "Example efficiency",
            share(run.example_efficiency.value),
            "",
            _efficiency_context(run.example_efficiency.low, run.example_efficiency.high, "of an example"),
        ),
        fact(
            "Step efficiency",
            share(run.step_efficiency.value),
            "",
            _efficiency_context(run.step_efficiency.low, run.step_efficiency.high, "of the best"),
        ),
        fact("Loss", significant(run.loss, 4), "", "latest" if is_zoomed else loss_context(series)),
        fact(
            "Progress",
            _progress(run.last_step),
            planned,
            run.status if is_zoomed else sentences.progress_words(run, series),
        ),
    ]


def _progress(step: int | None) -> str:
    return si(step, 4) if step is not None and step >= 10_000 else count(step)


def _efficiency_context(low: float | None, high: float | None, words: str) -> str:
    return f"{share_span(low, high)} {words}" if low is not None else "follows the noise scale"


def loss_context(series: NoiseScaleSeries) -> str:
    """How far the loss moved over the last tenth of the run."""
    known = [(step, v) for step, v in zip(series.points.step, series.points.loss, strict=True) if v is not None]
    if len(known) < 10:
        return "too few points for a trend"
    (before_step, before), (last_step, last) = known[-len(known) // 10], known[-1]
    sign = "−" if last < before else "+"
    return f"{sign}{significant(abs(last - before), 2)} in {si(last_step - before_step)} steps"
