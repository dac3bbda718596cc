"""The cards of a plan: its two figures, the table over batch sizes, and schedules side by side."""

import math
from collections.abc import Callable

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.answers import Interval
from noisescale_dashboard.figures import plan_quantities, time_against_cost, which_limit_binds
from noisescale_dashboard.figures.plan_quantities import hours_words
from noisescale_dashboard.figures.time_against_cost import devices_words
from noisescale_dashboard.number_format import NOTHING, count, money, share, si, significant, unbroken
from noisescale_dashboard.pages.parts import Child, Children, aria, card, figure_box
from noisescale_dashboard.pages.planner_sentences import growth_words, noun_of, what_if
from noisescale_dashboard.planner_answers import MeasuredRegret, Policy, Row, TradeOff

WHOLE_FROM = 10
"""Devices: of fewer, fractions are shown."""
NO_PLAN = "Needs a plan: the next run of a task, or steps and their batch under “Numbers of your own”."
COSTS = (("usd", "Cost"), ("examples", "Examples"), ("device_hours", "Device-hours"))
POLICIES = {
    "constant": "Constant batch",
    "follow": "Following the noise scale",
    "follow_in_stages": "Following it in stages",
    "doublings": "Doublings",
    "seesaw": "Seesaw",
    "fixed_ramp": "Fixed ramp",
    "late_switch": "Late switch",
    "noisescale": "noisescale's own policy",
}
MISSED = 7.0
"""A regret that stands for a run that missed its target."""
NEAR = 8.5
"""Batches further than this factor from the recommended one and the one in use are left to the figure and its data."""
NOT_MEASURED = "not measured"


def layout(*, narrow: bool) -> list[html.Section]:
    """The cards before their first data."""
    height = time_against_cost.NARROW_HEIGHT if narrow else time_against_cost.HEIGHT
    costs = dmc.SegmentedControl(
        id="planner-y",
        data=[{"value": value, "label": label} for value, label in COSTS],
        value="usd",
        size="xs",
        **aria({"aria-label": "What the axis of costs shows"}),
    )
    return [
        card(
            "Time against cost",
            "",
            figure_box("planner-pareto", card_id="planner-pareto-card", height=height),
            card_id="planner-pareto-card",
            actions=costs,
            class_name="pareto-card",
            is_figure=True,
        ),
        card(
            "Which limit binds",
            "",
            figure_box("planner-binds", card_id="planner-binds-card", height=which_limit_binds.LEAST_HEIGHT),
            card_id="planner-binds-card",
            footer=[],
            class_name="binds-card",
            is_figure=True,
        ),
        card(
            "By batch size",
            "",
            html.Div(id="planner-table", className="scrollx-in scrolly tall", tabIndex="0"),
            card_id="planner-table-card",
            footer=[],
            class_name="plan-table-card",
            has_table=True,
        ),
        card(
            "What if",
            "Predicted · in brackets: 95 %",
            html.Div(id="planner-what-ifs", className="what-ifs"),
            card_id="planner-what-if-card",
            class_name="what-if-card",
        ),
        card(
            "Schedules of the batch",
            "",
            html.Div(id="planner-policies", className="scrollx-in", tabIndex="0"),
            card_id="planner-policies-card",
            footer=[],
            class_name="policies-card",
            has_table=True,
        ),
    ]


def table_rows(plan: TradeOff) -> list[Row]:
    """The whole batches near the recommended one and the one in use, and these two, rising."""
    marked = [row for row in (plan.recommended, plan.present) if row is not None]
    centers = [row.batch_size for row in marked] or [plan.critical_batch.value or 1.0]
    near = [
        row
        for row in time_against_cost.dots(plan)
        if any(abs(math.log(row.batch_size / center)) < math.log(NEAR) for center in centers)
    ]
    return sorted({row.batch_size: row for row in (*near, *marked)}.values(), key=lambda row: row.batch_size)


def table(plan: TradeOff, *, narrow: bool) -> html.Table:
    """A row a batch: devices, time, cost and examples, each with its interval; what breaks a limit is dim."""
    columns = [column for column in _columns(plan) if any(column[1](row).value is not None for row in plan.rows)]
    if narrow:
        rows = [_narrow_row(row, plan, columns) for row in table_rows(plan)]
        return html.Table(html.Tbody(rows), className="tb plan-rows short")
    has_devices = any(row.num_devices for row in plan.rows)
    words = ["Batch", *(["Devices"] if has_devices else []), *(name for name, _, _ in columns)]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    rows = [_row(row, plan, columns, has_devices=has_devices) for row in table_rows(plan)]
    return html.Table([head, html.Tbody(rows)], className="tb plan-rows")


Column = tuple[str, Callable[[Row], Interval], Callable[[float], str]]


def _columns(plan: TradeOff) -> list[Column]:
    noun = noun_of(plan).capitalize()
    if not plan.has_plan:
        return [
            ("Steps ÷ fewest", lambda row: row.steps_factor, significant),
            (f"{noun} ÷ fewest", lambda row: row.examples_factor, significant),
        ]
    return [
        ("Time", lambda row: row.hours, hours_words),
        *([] if plan.has_hours else [("Steps", lambda row: row.steps, si)]),
        ("Cost", lambda row: row.usd, money),
        (noun, lambda row: row.examples, si),
    ]


def _row(row: Row, plan: TradeOff, columns: list[Column], *, has_devices: bool) -> html.Tr:
    breaks = ", ".join(limit.breaks for limit in plan.broken_by(row))
    cells: list[Child] = [html.Th([_mark(row, plan), count(row.batch_size)], scope="row")]
    cells += [html.Td(_devices(row.num_devices))] if has_devices else []
    cells += [_cell(of(row), shown) for _, of, shown in columns]
    return html.Tr(cells, className="off" if breaks else "", title=breaks or None)


def _mark(row: Row, plan: TradeOff) -> Child:
    """● of the recommended batch, ■ of the one in use, as in the figure."""
    for known, mark, said in ((plan.recommended, "rec", "recommended"), (plan.present, "now", "in use")):
        if known is not None and row.batch_size == known.batch_size:
            return html.Span(className=f"mk {mark}", title=said, role="img", **aria({"aria-label": said}))
    return ""


def _narrow_row(row: Row, plan: TradeOff, columns: list[Column]) -> html.Tr:
    """Batch and devices at the left; what they take at the right, each number above its interval."""
    devices = html.Span(devices_words(row.num_devices), className="between") if row.num_devices else ""
    told = [_line(of(row), shown, name) for name, of, shown in columns]
    return html.Tr(
        [html.Th([_mark(row, plan), count(row.batch_size), devices], scope="row"), html.Td(told)],
        className="off" if row.breaks else "",
    )


def _line(found: Interval, shown: Callable[[float], str], name: str) -> html.Div:
    """One number of a row on a phone, with its name where its unit does not tell it."""
    if found.value is None:
        return html.Div(f"{name.lower()} {NOTHING}")
    unit = "" if shown in (hours_words, money) else f" {name.lower()}"
    return html.Div([html.B(f"{shown(found.value)}{unit}"), html.Span(f" [{_between(found, shown)}]", className="dim")])


def _devices(devices: float | None) -> str:
    if devices is None:
        return NOTHING
    # as many digits as in the page's sentence
    is_shown_whole = float(devices).is_integer() or devices >= WHOLE_FROM
    return f"{devices:,.0f}" if is_shown_whole else significant(devices, 2)


def _cell(found: Interval, shown: Callable[[float], str]) -> html.Td:
    if found.value is None:
        return html.Td(NOTHING)
    return html.Td([html.B(shown(found.value)), html.Span(_between(found, shown), className="between")])


def _between(found: Interval, shown: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return NOTHING
    if math.isclose(found.low, found.high, rel_tol=1e-6):
        return "as planned"
    return plan_quantities.between(found.low, found.high, shown)


def table_footer(plan: TradeOff) -> Children:
    """What is assumed of a step's time."""
    return [plan.assumes] if plan.assumes else []


def what_ifs(plan: TradeOff) -> list[Child]:
    """Each in words; without any, what they would need."""
    if not plan.what_ifs:
        return [html.P(NO_PLAN, className="t2 small")]
    told = (what_if(one, plan) for one in plan.what_ifs)
    return [
        part
        for title, text in told
        for part in (html.H3(title, className="small"), html.P(unbroken(text), className="t2 small"))
    ]


def policies(plan: TradeOff, *, narrow: bool) -> Child:
    """A row a schedule, the cheapest first: what it is predicted to take, and what it cost where it was measured."""
    if not plan.policies:
        return html.P(NO_PLAN if plan.policies_missing else "", className="t2")
    columns = [column for column in _policy_columns(plan) if any(column[1](one).value for one in plan.policies)]
    if narrow:
        rows = [_narrow_policy(one, columns) for one in plan.policies]
        return html.Table(html.Tbody(rows), className="tb policies short")
    words = ["Schedule", "Batch", *(name for name, _, _ in columns), "Bill", "Measured regret"]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    return html.Table([head, html.Tbody([_policy(one, columns) for one in plan.policies])], className="tb policies")


PolicyColumn = tuple[str, Callable[[Policy], Interval], Callable[[float], str]]


def _policy_columns(plan: TradeOff) -> list[PolicyColumn]:
    return [
        ("Steps", lambda one: one.steps, si),
        (noun_of(plan).capitalize(), lambda one: one.examples, si),
        ("Time", lambda one: one.hours, hours_words),
        ("Cost", lambda one: one.usd, money),
    ]


def _policy(one: Policy, columns: list[PolicyColumn]) -> html.Tr:
    name = [html.B(POLICIES.get(one.name, one.name)), html.Span(one.text, className="between")]
    return html.Tr(
        [
            html.Th(name, scope="row"),
            html.Td(_batches(one)),
            *(_cell(of(one), shown) for _, of, shown in columns),
            html.Td(NOTHING if one.relative_cost is None else _bill(one.relative_cost)),
            html.Td(_regret(one.measured_regret)),
        ]
    )


def _narrow_policy(one: Policy, columns: list[PolicyColumn]) -> html.Tr:
    told = [_line(of(one), shown, name) for name, of, shown in columns if of(one).value is not None]
    name = [html.B(POLICIES.get(one.name, one.name)), html.Span(_batches(one), className="between")]
    bill = [] if one.relative_cost is None else [html.Div(f"bill {_bill(one.relative_cost)}")]
    return html.Tr(
        [html.Th(name, scope="row"), html.Td([*told, *bill, html.Div(["regret ", _regret(one.measured_regret)])])]
    )


def _batches(one: Policy) -> str:
    if one.first_batch is None or one.last_batch is None:
        return NOTHING
    first, last = si(one.first_batch), si(one.last_batch)
    return first if first == last else f"{first} → {last}"


def _bill(relative: float) -> str:
    percents = 100 * (relative - 1)
    if abs(percents) < 0.05:
        return "± 0 %"
    return f"{'+' if percents > 0 else '−'}{abs(percents):.1f} %"


def _regret(found: MeasuredRegret | None) -> Child:
    if found is None:
        return html.Span(NOT_MEASURED, className="dim")
    right = f"right: {share(found.median_right)}, p90 {_missed_or(found.p90_right)}"
    return html.Span(
        [html.B(share(found.median)), f", p90 {_missed_or(found.p90)}", html.Span(right, className="between")]
    )


def _missed_or(regret: float) -> str:
    return "misses" if regret >= MISSED else share(regret)


def policies_footer(plan: TradeOff) -> Children:
    """What the predictions and the measured regrets stand for."""
    if not plan.policies:
        return []
    source = next((one.measured_regret for one in plan.policies if one.measured_regret is not None), None)
    said = [growth_words(plan), "Predicted at rates that suit each batch; intervals keep the batches as planned now."]
    if source is not None:
        said.append(
            "Measured regret: cost over that of the best constant run, less one; median and p90 of runs whose batch "
            f"and rate start off by up to 8 and 4 × ({source.num_runs}), below of those that start right "
            f"({source.num_runs_right}); misses: never meets the target; {source.source}."
        )
    return [" ".join(said)]


def pareto_subtitle(plan: TradeOff) -> str:
    """To what, which scales, what dots and band are."""
    filled = " · filled: meets all limits" if plan.limits else ""
    scale = "log–log"
    return f"To {plan.target} · {scale} · a dot a batch size{filled} · band: 95 %"


def cost_choices(plan: TradeOff, wanted: str) -> list[dict[str, str]]:
    """The choices of the axis of costs that the plan knows; what stands for the wanted one has its value."""
    known = {one.name for one in plan_quantities.choices(plan, noun_of(plan))}
    shown = plan_quantities.upwards(plan, wanted, noun_of(plan)).name
    return [{"value": wanted if name == shown else name, "label": label} for name, label in COSTS if name in known]


def pareto_sentence(plan: TradeOff) -> str:
    """The figure of time against cost for those who do not see it."""
    feasible = [count(row.batch_size) for row in time_against_cost.dots(plan) if row.is_feasible]
    if not plan.limits:
        return f"A curve over {len(time_against_cost.dots(plan))} batch sizes: larger ones are quicker and cost more."
    return f"Batch sizes that meet all limits: {', '.join(feasible) or 'none'}."
