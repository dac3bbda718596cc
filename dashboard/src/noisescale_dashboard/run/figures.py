"""The cards of a run's figures over training: how they are asked for, drawn and captioned."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import Metric, NoiseScaleSeries
from noisescale_dashboard.figures.over_training import (
    efficiency_over_training,
    loss_over_training,
    noise_scale_over_training,
    signal_and_noise,
)
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.shell.explained import Child, Children, aria, term
from noisescale_dashboard.shell.parts import card, figure_box, icon, note
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.kinds import NO_ADVICE, SIMPLE, kind_named
from noisescale_dashboard.words.number_format import count, si

WINDOWS = ("auto", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20")
"""Choices of the window: automatic, then percent of the run."""
X_CHOICES = (("step", "Step"), ("units", "Units"), ("time", "Time"), ("loss", "Loss"))
SWITCHES = (
    ("envelope", "Range of single records, faint", True),
    ("linked", "Zoom the figures below as well", True),
    ("outside", "Stretch the axis to every point", False),
)
"""Name in the address, words, and whether it is on by default."""
POINTS, POINTS_BESIDE = 240, 160
"""Of the main figure, and of those beside it, which are half as wide."""


def noise_card(height: int) -> html.Section:
    """The main figure with its switches; height in pixels."""
    x_switch = dmc.SegmentedControl(
        id="run-x",
        data=[{"value": value, "label": label} for value, label in X_CHOICES],
        value="step",
        size="xs",
        **aria({"aria-label": "Measure training by"}),
    )
    return card(
        "Noise scale B_noise over training",
        "log · band: 95 % interval",
        figure_box("run-noise", card_id="run-noise-card", height=height),
        card_id="run-noise-card",
        actions=[_kind_choice(), x_switch, _window_choice()],
        footer=[],
        is_figure=True,
        class_name="noise-card",
    )


def terms_card() -> html.Section:
    """The two terms of the noise scale, or the efficiencies."""
    shown = dmc.SegmentedControl(
        id="run-terms-show",
        data=[{"value": "terms", "label": "Terms"}, {"value": "efficiency", "label": "Efficiency"}],
        value="terms",
        size="xs",
        **aria({"aria-label": "Terms or efficiency"}),
    )
    return card(
        "Signal and noise",
        "tr Σ and |G|², squared gradient, log · band: 95 %",
        figure_box("run-terms", card_id="run-terms-card", height=signal_and_noise.HEIGHT),
        card_id="run-terms-card",
        actions=shown,
        footer=[],
        is_figure=True,
    )


def loss_card() -> html.Section:
    """The training loss."""
    return card(
        "Loss",
        "Training loss · faint: min–max",
        figure_box("run-loss", card_id="run-loss-card", height=loss_over_training.HEIGHT),
        card_id="run-loss-card",
        is_figure=True,
    )


def _kind_choice() -> html.Div:
    choice = dmc.Select(
        id="run-kind",
        data=kind_choices(()),
        value=SIMPLE.name,
        allowDeselect=False,
        size="xs",
        w=112,
        **aria({"aria-label": "Kind of noise scale"}),
    )
    return html.Div(choice, id="run-kind-box", hidden=True)


def kind_choices(kinds: Sequence[str]) -> list[dict[str, str]]:
    """These kinds as choices, the simple one always among them."""
    return [{"value": name, "label": kind_named(name).label} for name in dict.fromkeys((SIMPLE.name, *kinds))]


def _window_choice() -> html.Details:
    slider = dmc.Slider(
        id="run-w",
        min=0,
        max=len(WINDOWS) - 1,
        step=1,
        value=0,
        marks=[{"value": i, "label": word if word == "auto" else f"{word} %"} for i, word in enumerate(WINDOWS)],
        label=None,
        size="sm",
        thumbLabel="Window, percent of the run",
        className="window-slider",
    )
    return html.Details(
        [
            html.Summary(["Window ", html.B("auto", id="run-w-word"), icon("chev", "xs")], className="btn small"),
            html.Div(
                [
                    html.P(["The ", term("window"), " of each point, as a share of the run."], className="t2"),
                    slider,
                    *(_switch(*switch) for switch in SWITCHES),
                ],
                className="dropdown grid",
            ),
        ],
        className="details",
    )


def _switch(name: str, words: str, is_on: bool) -> dmc.Switch:
    return dmc.Switch(id=f"run-{name}", label=words, checked=is_on, size="xs")


def series_query(view: Mapping[str, Any], run: Run, *, points: int = POINTS) -> dict[str, Any]:
    """The API's query for a view of the page; the window in steps from percent of the run."""
    window = None
    if view["w"] != "auto" and run.last_step is not None:
        window = max(1, round(float(view["w"]) / 100 * (run.last_step - (run.first_step or 0) + 1)))
    return {
        "points": points, "from": view["from"], "to": view["to"], "window": window, "group": view["layer"],
        "kind": None if view["kind"] == SIMPLE.name else view["kind"],
    }  # fmt: skip


def metrics_query(view: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the logged metrics."""
    return {"points": POINTS_BESIDE, "from": view["from"], "to": view["to"]}


def look_at(view: Mapping[str, Any], run: Run, *, narrow: bool) -> SeriesView:
    """How the figures are drawn; a zoomed range is another revision, so that the browser takes over its ends."""
    is_zoomed = view["from"] is not None or view["to"] is not None
    kind = kind_named(view["kind"])
    return SeriesView(
        kind=view["x"],
        unit=run.unit,
        noun=sentences.noun_of(run),
        is_live=run.status == "running",
        is_zoomed=is_zoomed,
        narrow=narrow,
        revision=f"{view['x']} {view['from']} {view['to']} {view['layer']} {view['kind']}",
        terms=(kind.noise, kind.signal),
        has_envelope=view["envelope"],
        shows_all=view["outside"],
        ends_in_latest=view["w"] == "auto" and view["layer"] is None,
    )


def beside(whole: NoiseScaleSeries, series: NoiseScaleSeries) -> NoiseScaleSeries:
    """The series of another kind with what belongs to the run: events, and at each point the loss up to there."""
    steps, losses = whole.points.step, whole.points.loss
    places = (bisect_left(steps, step) for step in series.points.step)
    loss = tuple(losses[place] if place < len(losses) else None for place in places)
    return replace(series, events=whole.events, points=replace(series.points, loss=loss))


@dataclass(frozen=True, slots=True)
class Read:
    """What the page shows of a run first.

    Attributes:
        series: Of the chosen layer or kind, in the zoomed range: the main figure.
        whole: Of the whole model, kind simple, in the range of the figures beside it.
    """

    series: NoiseScaleSeries
    whole: NoiseScaleSeries


@dataclass(frozen=True, slots=True)
class ReadBeside:
    """What the figures beside the main one show: of the whole run where they are not linked.

    Attributes:
        series: Of the chosen layer or kind.
        whole: Of the whole model, kind simple.
        metrics: What was logged beside the gradients.
    """

    series: NoiseScaleSeries
    whole: NoiseScaleSeries
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """The card of the two terms, or of the efficiencies that follow from them."""

    figure: go.Figure
    title: str
    subtitle: str
    footer: str | None
    sentence: str


def terms_of(read: ReadBeside, look: SeriesView, show: str) -> Terms:
    """What the card shows; efficiencies belong to the whole model and to kind simple."""
    if show == "efficiency":
        return Terms(
            efficiency_over_training.efficiency_over_training(read.whole, look),
            "Efficiency and waste",
            "Share of examples and of steps that is used · band: 95 %",
            "Shaded: redundant examples, from the noise scale at each moment, taken as the critical batch (κ = 1).",
            sentences.efficiency_sentence(read.whole),
        )
    return Terms(
        signal_and_noise.signal_and_noise(read.series, look),
        "Signal and noise",
        terms_subtitle(look),
        terms_footer(read.series, look),
        sentences.terms_sentence(read.series, look.terms),
    )


def x_choices(run: Run) -> list[dict[str, str]]:
    """Labels of the x switch, with the run's own unit."""
    unit = run.unit[:14].capitalize() or "Units"
    return [{"value": value, "label": unit if value == "units" else label} for value, label in X_CHOICES]


def noise_title(view: Mapping[str, Any]) -> str:
    """What is plotted: which kind, of which layer."""
    title = kind_named(view["kind"]).title
    return f"{title} of {view['layer']}" if view["layer"] else f"{title} over training"


def noise_subtitle(series: NoiseScaleSeries, look: SeriesView) -> str:
    """Unit, scale, band, and over how many steps each point is estimated."""
    said = [look.noun.capitalize(), "log", "band: 95 % interval"]
    if look.has_envelope and any(most is not None for most in series.points.value_max):
        said.append("faint: min–max")
    if series.window_steps:
        length = series.steps_per_point or 1
        widened = ", widened" if series.widened else ""
        said.append(
            f"each point: {count(length)} step{'s' if length > 1 else ''}, window {count(series.window_steps)}{widened}"
        )
    return " · ".join(said)


def noise_footer(series: NoiseScaleSeries, view: Mapping[str, Any]) -> Children:
    """Another kind, points outside the axis, a zoomed range, a layer: what a reader would otherwise not know."""
    said: list[Child] = []
    caveat = kind_named(view["kind"]).caveat
    if caveat:
        said.append(note(f"{caveat} {NO_ADVICE}", icon_name="info", quiet=True))
    outside = noise_scale_over_training.num_outside(series.points, shows_all=view["outside"])
    if outside:
        subject, them = ("One point lies", "it") if outside == 1 else (f"{count(outside)} points lie", "them")
        show = html.Button(f"Show {them}", type="button", className="inline", **aria({"data-checks": "run-outside"}))
        said.append(note([f"{subject} outside the axis, marked ▴ at its edge. ", show], icon_name="info", quiet=True))
    if view["from"] is not None or view["to"] is not None:
        ends = f"{si(view['from'] or 0)} – {si(view['to'])}" if view["to"] is not None else f"{si(view['from'])} on"
        said.append(html.Span(f"Zoomed to steps {ends}. Double click in the figure shows all."))
    if view["layer"]:
        said.append(html.Span("One layer is shown; clear the choice below to see the whole model."))
    return said


def terms_subtitle(look: SeriesView) -> str:
    """Which terms, their unit and scale, what the band is."""
    noise, signal = look.terms
    unit = ", squared gradient" if look.terms == (SIMPLE.noise, SIMPLE.signal) else ""
    return f"{noise} and {signal}{unit}, log · band: 95 %"


def terms_footer(series: NoiseScaleSeries, look: SeriesView) -> str | None:
    """Estimates of the signal that a logarithmic axis cannot show are counted, not dropped."""
    hidden = signal_and_noise.num_not_positive(series)
    if not hidden:
        return None
    return (
        f"{look.terms[1]} is estimated at or below zero at {hidden} of {len(series.points.step)} points; "
        "the line has gaps there."
    )


def loss_subtitle(series: NoiseScaleSeries, metrics: Sequence[Metric]) -> str:
    """Scale, envelope and other losses of the loss figure."""
    scale = ", log" if loss_over_training.is_log(series, metrics) else ""
    dots = " · dots: logged" if loss_over_training.losses(metrics) else ""
    return f"Training loss{scale} · faint: min–max{dots}"
