"""Time against cost over batch sizes: which batches meet the deadline, which the budget, and which both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.plans import Row, TradeOff
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import Cell, attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.figures.planning import plan_quantities
from noisescale_dashboard.figures.planning.plan_quantities import PlanQuantity
from noisescale_dashboard.words.number_format import count

HEIGHT, NARROW_HEIGHT = 400, 320
BAND_OPACITY = 0.1
REGION_OPACITY, BOTH_OPACITY = 0.07, 0.13
ROOM = 1.25
"""How far the axes reach beyond what is drawn, as a factor."""
NEAR, NARROW_NEAR = 1.5, 3.0
"""Dots of batches nearer than this factor to the recommended one or the one in use have no label of their own."""
THIN = 0.2
"""Share of the axis below which a region has no room for its words beside the curve."""
WIDEST = 10.0
"""An interval over a larger factor is no band."""
LIMIT_REACH = 8.0
"""A limit further than this factor from all dots is no reason to stretch the axis."""


@dataclass(frozen=True, slots=True)
class PlaneView:
    """How the figure is drawn.

    Attributes:
        cost: Name of the quantity upwards.
        noun: Plural of what one example is.
        deadline: In hours, or in steps where hours are not known; None without one.
        budget: In what stands upwards; None without one.
        narrow: For a phone.
        present_word: What the batch in use is called.
    """

    cost: str
    noun: str
    deadline: float | None = None
    budget: float | None = None
    narrow: bool = False
    present_word: str = "now"


@dataclass(frozen=True, slots=True)
class Beside:
    """The same plan at other prices: `name` is written at its curve; dotted where the devices may be interrupted."""

    plan: TradeOff
    name: str
    is_dotted: bool


@dataclass(frozen=True, slots=True)
class BatchMark:
    """How one marked batch is drawn and called."""

    name: str
    words: str
    color: str
    text_color: str
    symbol: str


Ends = tuple[float, float]


def time_against_cost(plan: TradeOff, view: PlaneView, beside: Beside | None = None) -> go.Figure:
    """The curve over all batches with its 95 % band, filled dots that meet all limits, ■ in use, ● recommended."""
    x, y = plan_quantities.across(plan), plan_quantities.upwards(plan, view.cost, view.noun)
    height = NARROW_HEIGHT if view.narrow else HEIGHT
    figure = blank_figure(height=height, right=14, top=12, bottom=42, left=50)
    figure.update_layout(hovermode="closest", hoverdistance=16)
    x_ends, y_ends = _ends(plan, x, view.deadline), _ends(plan, y, view.budget)
    _set_axes(figure, (x, x_ends), (y, y_ends), narrow=view.narrow)
    _add_regions(figure, view, x_ends, y_ends)
    _write_regions(figure, view, (x, x_ends), (y, y_ends))
    if beside is not None:
        _add_beside(figure, beside, x, y)
    _add_curve(figure, plan, x, y, is_dotted=beside is not None and not beside.is_dotted)
    _add_dots(figure, plan, view, x, y)
    labels.write_x_title(figure, x.title)
    attach_table(figure, _columns(plan, view.noun))
    return figure


def dots(plan: TradeOff) -> list[Row]:
    """The rows that are marked and told: whole batches; those between only carry the curve."""
    return [row for row in plan.rows if float(row.batch_size).is_integer()]


def _ends(plan: TradeOff, quantity: PlanQuantity, limit: float | None) -> Ends:
    rows = [*plan.rows, *(row for row in (plan.recommended, plan.present) if row is not None)]
    found = plan_quantities.known_ends([quantity.of(row).value for row in rows]) or (1.0, 100.0)
    if limit is not None and found[0] / LIMIT_REACH < limit < found[1] * LIMIT_REACH:
        found = (min(found[0], limit), max(found[1], limit))
    # a decade at least: what hardly changes should look so
    room = max(ROOM, math.sqrt(10 * found[0] / found[1]))
    return found[0] / room, found[1] * room


def _set_axes(
    figure: go.Figure, across: tuple[PlanQuantity, Ends], upwards: tuple[PlanQuantity, Ends], *, narrow: bool
) -> None:
    (x, x_ends), (y, y_ends) = across, upwards
    values, words = plan_quantities.ticks(x, *x_ends, at_most=4 if narrow else axes.MAX_TICKS)
    figure.update_xaxes(
        type="log", range=_logs(x_ends), tickvals=values, ticktext=words, showspikes=False, fixedrange=True
    )
    values, words = plan_quantities.ticks(y, *y_ends, at_most=8)
    figure.update_yaxes(type="log", range=_logs(y_ends), tickvals=values, ticktext=words)


def _logs(ends: Ends) -> list[float]:
    return [math.log10(end) for end in ends]


def _inside(limit: float | None, ends: Ends) -> float | None:
    """Where a limit's line stands; None where it lies outside the axis or there is none."""
    return limit if limit is not None and ends[0] < limit < ends[1] else None


def _add_regions(figure: go.Figure, view: PlaneView, x_ends: Ends, y_ends: Ends) -> None:
    """Blue left of the deadline, orange below the budget, green where both hold; a limit beyond the axis fills it."""
    has_deadline, has_budget = view.deadline is not None, view.budget is not None
    right = min(max(view.deadline if view.deadline is not None else 0.0, x_ends[0]), x_ends[1])
    top = min(max(view.budget if view.budget is not None else 0.0, y_ends[0]), y_ends[1])
    if has_deadline:
        bottom = top if has_budget else y_ends[0]
        _add_region(figure, (x_ends[0], right), (bottom, y_ends[1]), translucent(LIGHT.noise, REGION_OPACITY))
    if has_budget:
        left = right if has_deadline else x_ends[0]
        _add_region(figure, (left, x_ends[1]), (y_ends[0], top), translucent(LIGHT.batch, REGION_OPACITY))
    if has_deadline and has_budget:
        _add_region(figure, (x_ends[0], right), (y_ends[0], top), translucent(LIGHT.recommended, BOTH_OPACITY))
    for at, way, color in (
        (_inside(view.deadline, x_ends), figure.add_vline, LIGHT.noise),
        (_inside(view.budget, y_ends), figure.add_hline, LIGHT.batch),
    ):
        if at is not None:
            name = "x" if way == figure.add_vline else "y"
            way(**{name: at}, line={"color": color, "width": 1.5, "dash": "4px,3px"}, layer="below")


def _add_region(figure: go.Figure, x: Ends, y: Ends, color: str) -> None:
    if x[0] < x[1] and y[0] < y[1]:
        figure.add_shape(
            type="rect", x0=x[0], x1=x[1], y0=y[0], y1=y[1], fillcolor=color, line={"width": 0}, layer="below"
        )


def _write_regions(
    figure: go.Figure, view: PlaneView, across: tuple[PlanQuantity, Ends], upwards: tuple[PlanQuantity, Ends]
) -> None:
    (x, x_ends), (y, y_ends) = across, upwards
    deadline, budget = _inside(view.deadline, x_ends), _inside(view.budget, y_ends)
    if deadline is not None:
        _write_deadline(figure, (deadline, y_ends[1]), _named(x, deadline, "deadline"), x_ends, narrow=view.narrow)
    if budget is not None:
        corner, words = (x_ends[1], budget), _named(y, budget, "budget")
        _write(figure, corner, words, LIGHT.batch_text, anchors=("right", "bottom"), shift=(-4, 2))
        if not view.narrow and _share_below(budget, y_ends) > THIN:
            below = "economically feasible"
            _write(figure, corner, below, LIGHT.batch_text, anchors=("right", "top"), shift=(-4, -2))
    if deadline is not None and budget is not None and _share_below(budget, y_ends) > THIN / 2:
        corner, both = (x_ends[0], y_ends[0]), "<b>both ways</b>" if view.narrow else "<b>feasible both ways</b>"
        _write(figure, corner, both, LIGHT.recommended_text, anchors=("left", "bottom"), shift=(9, 7))


def _share_below(value: float, ends: Ends) -> float:
    """Of the axis, as it is drawn."""
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def _named(quantity: PlanQuantity, limit: float, name: str) -> str:
    is_usual = quantity.name in ("hours", "usd")
    return f"{name if is_usual else 'at most'} {plan_quantities.as_given(limit, quantity.name)}"


def _write_deadline(figure: go.Figure, at: tuple[float, float], words: str, ends: Ends, *, narrow: bool) -> None:
    """The limit to the right of its line while there is room, what it makes feasible to the left."""
    share = _share_below(at[0], ends)
    has_room = share < 0.7
    _write(
        figure,
        at,
        words,
        LIGHT.noise_text,
        anchors=("left" if has_room else "right", "top"),
        shift=(7 if has_room else -7, -3),
    )
    if not narrow and has_room and share > 0.25:
        _write(figure, at, "technically feasible", LIGHT.noise_text, anchors=("right", "top"), shift=(-7, -3))


def _add_curve(figure: go.Figure, plan: TradeOff, x: PlanQuantity, y: PlanQuantity, *, is_dotted: bool) -> None:
    known = [(x.of(row), y.of(row), row) for row in plan.rows]
    corners = band(plan, x, y)
    figure.add_scatter(
        x=[at for at, _ in corners], y=[at for _, at in corners],
        name="interval", mode="lines", line={"width": 0}, fill="toself", hoverinfo="skip",
        fillcolor=translucent(LIGHT.text_1, BAND_OPACITY),
    )  # fmt: skip
    line = {"color": LIGHT.text_1, "width": 2} | ({"dash": "1px,4px"} if is_dotted else {})
    figure.add_scatter(
        x=[a.value for a, _, _ in known], y=[b.value for _, b, _ in known], name="all batches", mode="lines",
        line=line, hovertemplate="%{customdata}<extra></extra>",
        customdata=[_told(plan, row, x, y) for _, _, row in known],
    )  # fmt: skip


def band(plan: TradeOff, x: PlanQuantity, y: PlanQuantity) -> list[Ends]:
    """The corners of the band: the low ends batch by batch, and back along the high ends.

    Empty where an interval goes over more than a decade: that is no band along a curve, and the table says it.

    Args:
        plan: With rows.
        x: What stands across.
        y: What stands upwards.
    """
    known = [(x.of(row), y.of(row)) for row in plan.rows]
    ends = [((a.low, b.low), (a.high, b.high)) for a, b in known if a.low and a.high and b.low and b.high]
    if any(high > WIDEST * low for pair in ends for low, high in zip(*pair, strict=True)):
        return []
    return [*(low for low, _ in ends), *(high for _, high in reversed(ends))]


def _add_beside(figure: go.Figure, beside: Beside, x: PlanQuantity, y: PlanQuantity) -> None:
    known = [(a, b) for row in beside.plan.rows if (a := x.of(row).value) is not None and (b := y.of(row).value)]
    if not known:
        return
    look = {"color": LIGHT.text_3, "width": 1.5} | ({"dash": "1px,4px"} if beside.is_dotted else {})
    figure.add_scatter(
        x=[a for a, _ in known], y=[b for _, b in known], name=beside.name, mode="lines", line=look,
        hovertemplate=f"{beside.name}<extra></extra>",
    )  # fmt: skip
    # at the slow end the curves are flat and lie apart
    _write(figure, max(known), beside.name, LIGHT.text_3, anchors=("right", "bottom"), shift=(0, 3))


def _add_dots(figure: go.Figure, plan: TradeOff, view: PlaneView, x: PlanQuantity, y: PlanQuantity) -> None:
    marked = [(plan.recommended, "recommended"), (plan.present, view.present_word)]
    told = [row for row in dots(plan) if x.of(row).value is not None and y.of(row).value is not None]
    figure.add_scatter(
        x=[x.of(row).value for row in told], y=[y.of(row).value for row in told], name="batch sizes", mode="markers",
        marker={
            "size": 8, "color": [LIGHT.text_1 if row.is_feasible else LIGHT.panel for row in told],
            "line": {"width": 1.75, "color": LIGHT.text_1},
        },
        customdata=[_told(plan, row, x, y) for row in told], hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    named, near = [row.batch_size for row, _ in marked if row is not None], NARROW_NEAR if view.narrow else NEAR
    for row in told[:: 2 if view.narrow else 1]:
        if all(abs(math.log(row.batch_size / other)) > math.log(near) for other in named):
            _write_at(figure, _at(row, x, y), _batch_words(row.batch_size), LIGHT.text_2, shift=(7, 2))
    if plan.present is not None and plan.present != plan.recommended:
        words = f"<b>{view.present_word} {count(plan.present.batch_size)}</b>"
        look = BatchMark(view.present_word, words, LIGHT.batch, LIGHT.batch_text, "square")
        _add_mark(figure, plan, plan.present, (x, y), look)
    if plan.recommended is not None:
        words = f"<b>{count(plan.recommended.batch_size)}</b>"
        look = BatchMark("recommended", words, LIGHT.recommended, LIGHT.recommended_text, "circle")
        _add_mark(figure, plan, plan.recommended, (x, y), look)


def _add_mark(
    figure: go.Figure, plan: TradeOff, row: Row, plane: tuple[PlanQuantity, PlanQuantity], look: BatchMark
) -> None:
    x, y = plane
    if x.of(row).value is None or y.of(row).value is None:
        return
    figure.add_scatter(
        x=[x.of(row).value], y=[y.of(row).value], name=look.name, mode="markers",
        marker=marks.ringed(look.color, size=14 if look.symbol == "circle" else 12) | {"symbol": look.symbol},
        customdata=[_told(plan, row, x, y)], hovertemplate=f"{look.name}: %{{customdata}}<extra></extra>",
    )  # fmt: skip
    _write_at(figure, _at(row, x, y), look.words, look.text_color, shift=(9, 4))


def _at(row: Row, x: PlanQuantity, y: PlanQuantity) -> tuple[float, float]:
    return x.of(row).value or 1.0, y.of(row).value or 1.0


def _batch_words(batch: float) -> str:
    if math.log2(batch).is_integer():
        return axes.power_of_two_ticks(batch, batch)[1][0]
    return count(batch)


def _told(plan: TradeOff, row: Row, x: PlanQuantity, y: PlanQuantity) -> str:
    """A row in the hover: batch, devices, time and cost with their intervals, and what it breaks."""
    devices = f" on {devices_words(row.num_devices)}" if row.num_devices and plan.adds_devices else ""
    reading = "; ".join(limit.breaks for limit in plan.broken_by(row))
    lines = [f"batch <b>{count(row.batch_size)}</b>{devices}", _with_ends(row, x), _with_ends(row, y)]
    return "<br>".join([*lines, *([reading] if reading else [])])


def devices_words(devices: float) -> str:
    """24 → "24 devices"; a batch that fills 1.5 of them says so.

    Args:
        devices: That run a batch, one at least.
    """
    shown = count(devices) if float(devices).is_integer() else f"{devices:,.2g}" if devices < 10 else f"{devices:,.0f}"
    return f"{shown} device{'' if devices == 1 else 's'}"


def _with_ends(row: Row, quantity: PlanQuantity) -> str:
    found = quantity.of(row)
    if found.value is None:
        return ""
    ends = ""
    if found.low and found.high:
        ends = f" [{plan_quantities.between(found.low, found.high, quantity.shown)}]"
    noun = f" {quantity.title}" if quantity.name in ("steps", "examples", "device_hours") else ""
    return f"{quantity.shown(found.value)}{ends}{labels.plain(noun)}"


def _write_at(figure: go.Figure, at: tuple[float, float], words: str, color: str, *, shift: tuple[int, int]) -> None:
    _write(figure, at, words, color, anchors=("left", "bottom"), shift=shift)


def _write(
    figure: go.Figure,
    at: tuple[float, float],
    text: str,
    color: str,
    *,
    anchors: tuple[str, str],
    shift: tuple[int, int],
) -> None:
    figure.add_annotation(
        x=math.log10(at[0]), y=math.log10(at[1]), text=text, xanchor=anchors[0], yanchor=anchors[1], showarrow=False,
        xshift=shift[0], yshift=shift[1], font={"size": 12, "color": color, "family": FONT},
    )  # fmt: skip


def _columns(plan: TradeOff, noun: str) -> dict[str, Sequence[Cell]]:
    """A row a batch that is marked."""
    rows = dots(plan)
    columns: dict[str, Sequence[Cell]] = {
        f"batch size ({noun})": [row.batch_size for row in rows],
        "devices": [row.num_devices for row in rows],
    }
    for quantity in (plan_quantities.across(plan), *plan_quantities.choices(plan, noun)):
        name = {"hours": "hours", "usd": "USD"}.get(quantity.name, quantity.title)
        found = [quantity.of(row) for row in rows]
        columns[name] = [one.value for one in found]
        columns[f"{name}, lower end"] = [one.low for one in found]
        columns[f"{name}, upper end"] = [one.high for one in found]
    return columns | {"limits not met": [", ".join(limit.name for limit in plan.broken_by(row)) for row in rows]}
