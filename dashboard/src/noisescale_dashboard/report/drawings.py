"""The report's figures: those of the run's page, as SVG that a printer without colours can show."""

import plotly.graph_objects as go
from dash import html

from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView, noise_scale_over_training
from noisescale_dashboard.figures.planning.trade_off_position import trade_off_position
from noisescale_dashboard.figures.svg import as_svg
from noisescale_dashboard.report.markup import Markup
from noisescale_dashboard.report.reading import Reported
from noisescale_dashboard.run import laws as run_laws
from noisescale_dashboard.words import sentences

WIDE, WIDE_HEIGHT = 643, 227
"""Pixels: 170 × 60 mm."""
NARROW, NARROW_HEIGHT = 340, 260
HALF = 280
BATCH_DASH = "7px,4px"
"""What tells the batch from the noise scale where blue and orange are the same grey."""


def noise_scale(found: Reported) -> list[html.Div]:
    """The noise scale over training, once for paper and wide screens and once for phones."""
    words = sentences.series_sentence(found.series, sentences.noun_of(found.run))
    return [
        html.Div(_svg(_noise_figure(found, narrow=narrow), width, name, words), className=name)
        for name, width, narrow in (("wide", WIDE, False), ("narrow", NARROW, True))
    ]


def _noise_figure(found: Reported, *, narrow: bool) -> go.Figure:
    run = found.run
    view = SeriesView(
        unit=run.unit,
        noun=sentences.noun_of(run),
        narrow=narrow,
        height=NARROW_HEIGHT if narrow else WIDE_HEIGHT,
    )
    figure = noise_scale_over_training(found.series, view)
    figure.update_traces(selector={"name": "batch"}, line_dash=BATCH_DASH)
    return figure


def trade_off(found: Reported) -> Markup:
    """Where the batch in use and the recommended one lie on the trade-off curve."""
    figure = trade_off_position(found.advice, narrow=True)
    return _svg(figure, HALF, "tradeoff", run_laws.position_sentence(found.advice))


def _svg(figure: go.Figure, width: int, name: str, description: str) -> Markup:
    return Markup(as_svg(figure, width=width, name=name, description=description))
