"""The visual language of all figures: two palettes that map one to one, the font, the base layout.

Figures are drawn in the light palette only. The browser recolours them for the dark one by looking each colour up in
`dark_of_light()`, so no two light tokens with different dark ones may share a value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import plotly.graph_objects as go

from noisescale_dashboard.figures.parts.drawing import Drawing

FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
LEFT_MARGIN = 46
"""Pixels; the same in all figures of a page, so that plots line up."""
TRANSPARENT = "rgba(0,0,0,0)"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by what they mean."""

    panel: str
    raised: str
    text_1: str
    text_2: str
    text_3: str
    line_strong: str
    grid: str
    axis: str
    noise: str
    noise_text: str
    batch: str
    batch_text: str
    recommended: str
    recommended_text: str
    sequential: tuple[str, ...]
    categories: tuple[str, ...]


LIGHT = Palette(
    panel="#FFFFFF",
    raised="#FFFFFE",
    text_1="#14171F",
    text_2="#4B5361",
    text_3="#687080",
    line_strong="#D3D8E0",
    grid="#E9ECF0",
    axis="#C3C9D2",
    noise="#2A6BD4",
    noise_text="#1F57B5",
    batch="#C8590A",
    batch_text="#A84706",
    recommended="#06664F",
    recommended_text="#06664E",
    sequential=("#EDF3FC", "#C9DCF7", "#93B9EE", "#5C93E0", "#2A6BD4", "#1C4C9C", "#10305F"),
    categories=("#2A6BD4", "#C8590A", "#06664F", "#A8327F", "#AD8D3F", "#5B3FA8", "#4B9DC1"),
)
DARK = Palette(
    panel="#15181E",
    raised="#1B1F27",
    text_1="#E9EBEF",
    text_2="#AEB5C1",
    text_3="#8B93A2",
    line_strong="#353C48",
    grid="#21262F",
    axis="#3C4450",
    noise="#6CA6FF",
    noise_text="#8DBAFF",
    batch="#F2994A",
    batch_text="#F5AE6E",
    recommended="#6BE3BF",
    recommended_text="#83E9CB",
    sequential=("#18202E", "#1E3558", "#25508D", "#3271C4", "#6CA6FF", "#A5C9FF", "#DCEAFF"),
    categories=("#6CA6FF", "#F2994A", "#6BE3BF", "#D36EB2", "#ECDE85", "#8357D8", "#9FB4C7"),
)


def dark_of_light() -> dict[str, str]:
    """The dark colour of each light one."""
    pairs: dict[str, str] = {}
    for field in fields(Palette):
        light, dark = getattr(LIGHT, field.name), getattr(DARK, field.name)
        pairs.update({light: dark} if isinstance(light, str) else zip(light, dark, strict=True))
    return pairs


def translucent(color: str, opacity: float) -> str:
    """`color` ("#RRGGBB") with an opacity, as plotly writes it."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def blank_figure(*, height: int, right: int, top: int, bottom: int, left: int = LEFT_MARGIN) -> go.Figure:
    """A figure with axes, hover and grid of the house and nothing in it. Margins and height in pixels."""
    # all of it later: plotly checks and copies what a figure is made with
    return Drawing().update_layout(
        # a layer may be called "1"
        autotypenumbers="strict",
        height=height,
        font={"family": FONT, "size": 12, "color": LIGHT.text_2},
        paper_bgcolor=TRANSPARENT,
        plot_bgcolor=TRANSPARENT,
        margin={"l": left, "r": right, "t": top, "b": bottom, "pad": 0},
        showlegend=False,
        dragmode="zoom",
        hovermode="x unified",
        hoversort="trace",
        # 4: beyond it "x unified" would show the nearest other point inside a gap, a number where none is known
        hoverdistance=4,
        spikedistance=-1,
        hoverlabel={
            "bgcolor": LIGHT.raised,
            "bordercolor": LIGHT.line_strong,
            "font": {"family": FONT, "size": 12, "color": LIGHT.text_1},
            "align": "left",
        },
        separators=".,",
        xaxis=_axis() | _x_axis(),
        yaxis=_axis() | {"showgrid": True, "gridcolor": LIGHT.grid, "gridwidth": 1, "fixedrange": True},
    )


def _axis() -> dict[str, object]:
    return {
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "automargin": False,
        "tickfont": {"size": 12, "color": LIGHT.text_3},
        # False and not None: a spike on y would cover the batch line with grey
        "showspikes": False,
    }


def _x_axis() -> dict[str, object]:
    return {
        "showline": True,
        "linecolor": LIGHT.axis,
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": LIGHT.axis,
        "showspikes": True,
        "spikemode": "across",
        "spikethickness": 1,
        "spikedash": "solid",
        "spikecolor": LIGHT.axis,
    }


# Colours of what is compared: units, and runs by their slot. Roles keep theirs, so a run is never blue or orange.

UNITS = ("images", "tokens", "observations")
"""These come first, so that a unit has the same colour whatever stands beside it."""
RUN_COLORS = (*LIGHT.categories[3:], LIGHT.text_1)
"""One a slot; the first three categories are the roles' colours."""
OTHER = LIGHT.text_3


def colors_of_units(units: Iterable[str]) -> dict[str, str]:
    """The colour of each unit, those that have one in their order; grey where the colours are used up."""
    present = sorted(set(units), key=lambda unit: (UNITS.index(unit) if unit in UNITS else len(UNITS), unit))
    known = {unit: LIGHT.categories[UNITS.index(unit)] for unit in present if unit in UNITS}
    left = iter(LIGHT.categories[len(UNITS) :])
    return {unit: known.get(unit) or next(left, OTHER) for unit in present}


def color_of_slot(slot: int | None) -> str:
    """The colour of a run in this slot, grey for one that has none."""
    return OTHER if slot is None else RUN_COLORS[slot]
