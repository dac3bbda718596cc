"""The controls and cards of the overview, before its first data."""

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.figures.comparison import misfit, small_multiples
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, figure_box

SCOPES = (("running", "Running"), ("7d", "7 days"), ("30d", "30 days"))
PREFERENCES = (("0.2", "Data"), ("0.5", "Both equally"), ("0.8", "Time"))
"""What counts more, from fewest examples to fewest steps."""
SMALL_SUBTITLE = "Since the start · log, each panel with its own unit and scale · band: 95 % interval"


def choices() -> list[Child]:
    """Which runs; the project is the switch's, in the header of every page."""
    scope = dmc.SegmentedControl(
        id="overview-scope",
        data=[{"value": value, "label": label} for value, label in SCOPES],
        value="running",
        size="xs",
        **aria({"aria-label": "Which runs"}),
    )
    return [scope]


def misfit_card(narrow: bool) -> html.Section:
    """Which runs are off, and the preference that judges them."""
    preference = dmc.Select(
        id="overview-pref",
        data=[{"value": value, "label": label} for value, label in PREFERENCES],
        value="0.5",
        allowDeselect=False,
        size="xs",
        w=118,
        **aria({"aria-label": "What counts more, data or time"}),
    )
    return card(
        "Batch size against the recommendation",
        misfit_subtitle(narrow=narrow),
        figure_box("overview-misfit", card_id="overview-misfit-card", height=misfit.height_of(6, narrow=narrow)),
        card_id="overview-misfit-card",
        actions=[html.Label("What counts more", htmlFor="overview-pref", className="lab"), preference],
        footer=[],
        class_name="misfit-card",
        is_figure=True,
    )


def events_card() -> html.Section:
    """What has happened."""
    return card(
        "What has happened",
        "Resolved estimates, crossings, changed batches, stalls",
        html.Div(id="overview-events"),
        card_id="overview-events-card",
        footer=[],
    )


def small_card(narrow: bool) -> html.Section:
    """Small panels of what runs."""
    key = [
        html.Span([html.Span(className="sw n"), " noise scale"], className="nb"),
        html.Span([html.Span(className="sw b"), " batch"], className="nb"),
    ]
    return card(
        "Noise scale and batch",
        SMALL_SUBTITLE,
        figure_box("overview-small", card_id="overview-small-card", height=small_multiples.height_of(6, narrow=narrow)),
        card_id="overview-small-card",
        actions=html.Div(key, className="row key"),
        class_name="small-card",
        is_figure=True,
    )


def misfit_subtitle(*, narrow: bool) -> str:
    """What x is and what the bars are."""
    if narrow:
        return "Batch ÷ recommended, log · bars: 95 %"
    return "Batch ÷ recommended, log · thick bar: 95 % by the measurement, thin: with calibration"
