"""The cards of a plan: its two figures, the table over batch sizes, and schedules side by side."""

import math
from collections.abc import Callable

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.plans import MeasuredRegret, Policy, Row, TradeOff
from noisescale_dashboard.figures.planning import plan_quantities, time_against_cost, which_limit_binds
from noisescale_dashboard.figures.planning.plan_quantities import hours_words
from noisescale_dashboard.figures.planning.time_against_cost import devices_words
from noisescale_dashboard.planner.words import growth_words, noun_of, what_if
from noisescale_dashboard.shell.explained import Child, Children, aria
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.words.number_format import NOTHING, count, money, share, si, significant, unbroken

WHOLE_FROM = 10
"""Devices: of fewer, fractions are shown."""
NO_PLAN = "Needs a plan: choose a task's next run, or enter steps and their batch under “Numbers of your own”."
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
OWN = "noisescale"
"""The product's own policy."""
BY_THE_RUN = "decides by what the run shows"
MISSED = 7.0
"""A regret that stands for a run that missed its target."""
NEAR = 8.5
"""Batches further than this factor from the recommended one and the one in use are left to the figure and its data."""
NOT_MEASURED = "not measured"


def layout(*, narrow: bool) -> list[Child]:
    """The two figures and the tabs below them, before their first data."""
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
        _tabs(),
    ]


def _tabs() -> dmc.Tabs:
    """Batches, schedules and other plans, one of them at a time; on paper all."""
    tabs = {
        "table": (
            "By batch size",
            card(
                "By batch size",
                "",
                html.Div(id="planner-table", className="scrollx-in scrolly tall", tabIndex="0"),
                card_id="planner-table-card",
                footer=[],
                class_name="plan-table-card",
                has_table=True,
            ),
        ),
        "policies": (
            "Schedules",
            card(
                "Schedules of the batch",
                "",
                html.Div(id="planner-policies", className="scrollx-in", tabIndex="0"),
                card_id="planner-policies-card",
                footer=[],
                class_name="policies-card",
                has_table=True,
            ),
        ),
        "what-if": (
            "What if",
            card(
                "What if",
                "Predicted · in brackets: 95 %",
                html.Div(id="planner-what-ifs", className="what-ifs"),
                card_id="planner-what-if-card",
                class_name="what-if-card",
            ),
        ),
        "beyond": (
            "More devices",
            card(
                "What more devices buy",
                "",
                [
                    html.Div(id="planner-ways", className="scrollx-in", tabIndex="0"),
                    html.Div(id="planner-beyond", className="what-ifs"),
                ],
                card_id="planner-beyond-card",
                footer=[],
                class_name="policies-card",
                has_table=True,
            ),
        ),
    }
    names = [dmc.TabsTab(label, value=name) for name, (label, _) in tabs.items()]
    panels = [dmc.TabsPanel(one, value=name) for name, (_, one) in tabs.items()]
    return dmc.Tabs([dmc.TabsList(names), *panels], id="planner-tabs", value="table", className="planner-tabs")


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
    columns = [column for column in _columns(plan) if _is_told(column[1], plan)]
    if narrow:
        rows = [_narrow_row(row, plan, columns) for row in table_rows(plan)]
        return html.Table(html.Tbody(rows), className="tb plan-rows short")
    has_devices = plan.adds_devices and any(row.num_devices for row in plan.rows)
    words = ["Batch", *(["Devices"] if has_devices else []), *(name for name, _, _ in columns)]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    rows = [_row(row, plan, columns, has_devices=has_devices) for row in table_rows(plan)]
    return html.Table([head, html.Tbody(rows)], className="tb plan-rows")


def _is_told(of: Callable[[Row], Interval], plan: TradeOff) -> bool:
    """Whether more than the batch in use has it: a column of dashes says nothing."""
    known = sum(of(row).value is not None for row in plan.rows)
    return known > 1 or known == len(plan.rows) == 1


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
    cells += [cell(of(row), shown) for _, of, shown in columns]
    return html.Tr(cells, className="off" if breaks else "", title=breaks or None)


def _mark(row: Row, plan: TradeOff) -> Child:
    """● of the recommended batch, ■ of the one in use, as in the figure."""
    for known, mark, said in ((plan.recommended, "rec", "recommended"), (plan.present, "now", "in use")):
        if known is not None and row.batch_size == known.batch_size:
            return html.Span(className=f"mk {mark}", title=said, role="img", **aria({"aria-label": said}))
    return ""


def _narrow_row(row: Row, plan: TradeOff, columns: list[Column]) -> html.Tr:
    """Batch and devices at the left; what they take at the right, each number above its interval."""
    is_told = plan.adds_devices and row.num_devices
    devices = html.Span(devices_words(row.num_devices), className="between") if is_told and row.num_devices else ""
    told = [line(of(row), shown, name) for name, of, shown in columns]
    return html.Tr(
        [html.Th([_mark(row, plan), count(row.batch_size), devices], scope="row"), html.Td(told)],
        className="off" if row.breaks else "",
    )


def line(found: Interval, shown: Callable[[float], str], name: str) -> html.Div:
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


def cell(found: Interval, shown: Callable[[float], str]) -> html.Td:
    """A number above its interval."""
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
    # where other batches have no time, the note above says so
    return [plan.assumes] if plan.assumes and plan.has_hours else []


def what_ifs(plan: TradeOff) -> list[Child]:
    """Each in words; without any, what they would need."""
    if not plan.what_ifs:
        return [html.P(NO_PLAN, className="t2 small")]
    told = (what_if(one, plan) for one in plan.what_ifs)
    return [
        html.Div([html.H3(title, className="small"), html.P(unbroken(text), className="t2 small")])
        for title, text in told
    ]


def policies(plan: TradeOff, *, narrow: bool) -> Child:
    """A row a schedule: the product's own, then the cheapest first, with what it cost where it was measured."""
    if not plan.policies:
        return html.P(NO_PLAN if plan.policies_missing else "", className="t2")
    columns = [column for column in _policy_columns(plan) if any(column[1](one).value for one in plan.policies)]
    told = sorted(plan.policies, key=lambda one: one.name != OWN)
    if narrow:
        return html.Table(html.Tbody([_narrow_policy(one, columns) for one in told]), className="tb policies short")
    words = ["Schedule", "Batch", *(name for name, _, _ in columns), "Bill", "Extra cost, measured"]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    return html.Table([head, html.Tbody([_policy(one, columns) for one in told])], className="tb policies")


PolicyColumn = tuple[str, Callable[[Policy], Interval], Callable[[float], str]]


def _policy_columns(plan: TradeOff) -> list[PolicyColumn]:
    return [
        ("Steps", lambda one: one.steps, si),
        (noun_of(plan).capitalize(), lambda one: one.examples, si),
        ("Time", lambda one: one.hours, hours_words),
        ("Cost", lambda one: one.usd, money),
    ]


def _policy(one: Policy, columns: list[PolicyColumn]) -> html.Tr:
    name = html.Th([html.B(POLICIES.get(one.name, one.name)), html.Span(one.text, className="between")], scope="row")
    if one.relative_cost is None:
        decides = html.Td(BY_THE_RUN, colSpan=len(columns) + 2, className="dim")
        return html.Tr([name, decides, html.Td(_regret(one.measured_regret))])
    told = [cell(of(one), shown) for _, of, shown in columns]
    bill = html.Td(_bill(one.relative_cost))
    return html.Tr([name, html.Td(_batches(one)), *told, bill, html.Td(_regret(one.measured_regret))])


def _narrow_policy(one: Policy, columns: list[PolicyColumn]) -> html.Tr:
    told = [line(of(one), shown, name) for name, of, shown in columns if of(one).value is not None]
    name = [html.B(POLICIES.get(one.name, one.name)), html.Span(_batches(one), className="between")]
    if one.relative_cost is None:
        name, told = [html.B(POLICIES.get(one.name, one.name))], [html.Div(BY_THE_RUN, className="dim")]
    bill = [] if one.relative_cost is None else [html.Div(f"bill {_bill(one.relative_cost)}")]
    regret = [] if one.measured_regret is None else [html.Div(["extra cost ", _regret(one.measured_regret)])]
    return html.Tr([html.Th(name, scope="row"), html.Td([*told, *bill, *regret])])


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
    right = f"{share(found.median_right)} where batch and rate start right, {_tenth(found.p90_right)}"
    worst = html.Span(_tenth(found.p90), className="between")
    return html.Span([html.B(share(found.median)), worst], title=unbroken(right))


def _tenth(regret: float) -> str:
    """The cost that a run in ten exceeds."""
    return "1 in 10 misses the target" if regret >= MISSED else f"1 in 10 above {share(regret)}"


def policies_footer(plan: TradeOff) -> Children:
    """What the predictions and the measured costs stand for."""
    if not plan.policies:
        return []
    source = next((one.measured_regret for one in plan.policies if one.measured_regret is not None), None)
    said = [growth_words(plan)]
    if source is not None:
        said.append(f"Extra cost: against the best constant batch, median of {source.num_runs} runs of held-out tasks.")
    return [" ".join(said)]


def pareto_subtitle(plan: TradeOff, wanted: str) -> str:
    """To what, which scales, what dots and band are."""
    filled = " · filled: meets all limits" if plan.limits else ""
    x, y = plan_quantities.across(plan), plan_quantities.upwards(plan, wanted, noun_of(plan))
    band = " · band: 95 %" if time_against_cost.band(plan, x, y) else ""
    return f"To {plan.target} · log–log · a dot a batch size{filled}{band}"


def pareto_title(plan: TradeOff, wanted: str) -> str:
    """What stands across and upwards: time against cost, or steps against images where no time is known."""
    noun = noun_of(plan)
    across = "Time" if plan_quantities.across(plan).name == "hours" else "Steps"
    upwards = plan_quantities.upwards(plan, wanted, noun).name
    return f"{across} against {'cost' if upwards == 'usd' else 'device-hours' if upwards == 'device_hours' else noun}"


def cost_choices(plan: TradeOff, wanted: str) -> list[dict[str, str]]:
    """The choices of the axis of costs that the plan knows; what stands for the wanted one has its value."""
    known = {one.name for one in plan_quantities.choices(plan, noun_of(plan))}
    shown = plan_quantities.upwards(plan, wanted, noun_of(plan)).name
    noun = noun_of(plan).capitalize()
    return [
        {"value": wanted if name == shown else name, "label": noun if name == "examples" else label}
        for name, label in COSTS
        if name in known
    ]


def pareto_sentence(plan: TradeOff) -> str:
    """The figure of time against cost for those who do not see it."""
    feasible = [count(row.batch_size) for row in time_against_cost.dots(plan) if row.is_feasible]
    if not plan.limits:
        return f"A curve over {len(time_against_cost.dots(plan))} batch sizes: larger ones are quicker and cost more."
    return f"Batch sizes that meet all limits: {', '.join(feasible) or 'none'}."
