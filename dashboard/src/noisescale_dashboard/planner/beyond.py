"""What devices beyond the recommended batch buy: runs side by side, trials of a search, a larger model."""

from collections.abc import Callable
from urllib.parse import urlencode

from dash import html

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.plans import Beyond, TradeOff, Way
from noisescale_dashboard.figures.planning.plan_quantities import between, hours_words
from noisescale_dashboard.planner.cards import cell, line
from noisescale_dashboard.planner.scope import Scope
from noisescale_dashboard.shell.explained import Child, Children, aria
from noisescale_dashboard.shell.parts import link
from noisescale_dashboard.words.number_format import NOTHING, chance, count, money, ratio, share, si, significant

Column = tuple[str, Callable[[Way], Interval], Callable[[float], str]]
SPREAD = "Best of them: how far above their mean, in standard deviations between runs."
WHERE_TESTED = "/compare?tab=tasks#compare-sizes-card"
ABOUT_SIZES = "Larger models at equal loss"


def subtitle(plan: TradeOff) -> str:
    """How many devices there are, and how many the recommended and the critical batch fill."""
    beyond = plan.beyond
    if beyond.num_devices is None:
        return "Predicted"
    assumed = ", assumed: type your own under Limits" if beyond.is_assumed else ""
    filled = _in_short(beyond.of_critical_batch, _devices)
    return (
        f"{count(beyond.num_devices)} devices{assumed} · the recommended batch fills {count(beyond.num_used)}, "
        f"B_crit {filled} · in small: 95 %"
    )


def footer(plan: TradeOff) -> Children:
    """What is assumed of parts of the devices."""
    return [SPREAD] if plan.beyond.ways else []


def ways(plan: TradeOff, *, narrow: bool) -> Child:
    """A row a number of runs side by side, from one on all devices; without any, what it would need."""
    beyond = plan.beyond
    if not beyond.ways:
        return html.P(beyond.missing or "", className="t2 small")
    columns = [one for one in _columns(plan) if any(one[1](way).value is not None for way in beyond.ways)]
    if narrow:
        return html.Table(html.Tbody([_narrow(way, columns) for way in beyond.ways]), className="tb policies short")
    words = ["Side by side", *(name for name, _, _ in columns)]
    words += ["Best of them", "One in the best 5 %"]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    return html.Table([head, html.Tbody([_wide(way, columns) for way in beyond.ways])], className="tb policies")


def _columns(plan: TradeOff) -> list[Column]:
    takes: list[Column] = [
        ("Time", lambda way: way.row.hours, hours_words),
        *([] if plan.has_hours else [("Steps", lambda way: way.row.steps, si)]),
        ("Cost of all", lambda way: _of_all(way.row.usd, way), money),
    ]
    return [
        *takes,
        ("Put to use", lambda way: way.efficiency, share),
        ("Runs a day", lambda way: way.runs_per_day, significant),
        ("Against one by one", lambda way: way.times_as_many, ratio),
    ]


def _of_all(found: Interval, way: Way) -> Interval:
    """Of all runs side by side together."""
    ends = (None if end is None else end * way.num_runs for end in (found.value, found.low, found.high))
    return Interval(*ends)


def _wide(way: Way, columns: list[Column]) -> html.Tr:
    cells = [cell(of(way), shown) for _, of, shown in columns]
    return html.Tr([_name(way), *cells, html.Td(_best_of(way)), html.Td(chance(way.chance_of_top))])


def _narrow(way: Way, columns: list[Column]) -> html.Tr:
    told = [line(of(way), shown, name) for name, of, shown in columns if of(way).value is not None]
    last = [f"best {_best_of(way)}", f"{chance(way.chance_of_top)} one in the best 5 %"]
    return html.Tr([_name(way), html.Td([*told, *(html.Div(words) for words in last)])])


def _name(way: Way) -> html.Th:
    """How many runs, and what each of them is."""
    runs = "run" if way.num_runs == 1 else "runs"
    devices = "device" if way.num_devices == 1 else "devices"
    told = [f"{count(way.num_devices)} {devices}, batch {count(way.row.batch_size)}"]
    told += ["the recommended batch"] if way.is_best else []
    told += [f"{count(way.num_idle)} idle"] if way.num_idle else []
    said = [html.Span(words, className="between") for words in told]
    return html.Th([html.B(f"{count(way.num_runs)} {runs}"), *said], scope="row")


def _best_of(way: Way) -> str:
    return NOTHING if way.num_runs == 1 else f"+{way.best_of:.2f} sd"


def _devices(number: float) -> str:
    return significant(number, 2)


def _in_short(found: Interval, shown: Callable[[float], str]) -> str:
    """A value with its interval in brackets where it has one."""
    if found.value is None:
        return NOTHING
    if found.low is None or found.high is None or found.low == found.high:
        return shown(found.value)
    return f"{shown(found.value)} [{between(found.low, found.high, shown)}]"


def other_uses(plan: TradeOff, scope: Scope) -> list[Child]:
    """A search and a larger model, in words."""
    beyond = plan.beyond
    if not beyond.ways:
        return []
    return [_use("A search", *_search(beyond, scope)), _use("A larger model", *_larger_model(beyond))]


def _use(title: str, text: str, more: Child) -> html.Div:
    return html.Div(
        [html.H3(title, className="small"), html.P([text, " ", more], className="t2 small")],
        **aria({"data-other-use": title}),
    )


def _search(beyond: Beyond, scope: Scope) -> tuple[str, Child]:
    found = beyond.search
    to = "/sweeps" if scope.project is None else f"/sweeps?{urlencode({'project': scope.project})}"
    more = link("What earlier sweeps cost", to, class_name="inline")
    if found is None:
        return "Needs a batch inside the limits.", more
    best = next((way.num_runs for way in beyond.ways if way.is_best), 1)
    said = f"{found.num_trials} random trials hold one of the best 5 % of all settings with 95 %: "
    said += f"{found.num_rounds} rounds of {best} side by side" if best > 1 else "one after another"
    taken = [f"{_in_short(found.hours, hours_words)}"] if found.hours.value is not None else []
    taken += [f"{_in_short(found.usd, money)}"] if found.usd.value is not None else []
    return f"{said}{', ' if taken else ''}{', '.join(taken)}. An informed search takes fewer.", more


def _larger_model(beyond: Beyond) -> tuple[str, Child]:
    found, more = beyond.larger_model, link(ABOUT_SIZES, WHERE_TESTED, class_name="inline")
    if found is None:
        return beyond.larger_model_text, more
    return (
        f"{ratio(found.times)} the parameters and tokens on all devices, at the same batch: at least "
        f"{_in_short(found.hours, ratio)} the time and {_in_short(found.device_hours, ratio)} the device-hours; "
        f"B_crit {_in_short(found.critical_batch, ratio)}. {beyond.larger_model_text}"
    ), more
