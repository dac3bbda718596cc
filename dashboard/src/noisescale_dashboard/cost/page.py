"""Time and cost: who reached a target fastest and cheapest, what made the difference, and how compute grew.

DAWNBench's submissions and one's own runs never share a table or a figure: their prices are of different kinds.
"""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.cost import Board, ComputeGrowth
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.cost import tables
from noisescale_dashboard.figures import cost
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, Children, aria
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.words.number_format import count, duration, exactly, money, significant

TITLE = "Time and cost"
SECONDS = 3600
SUBMISSIONS = ("ImageNet", "CIFAR10", "SQuAD")
TABS = (("ImageNet", "ImageNet"), ("CIFAR10", "CIFAR10"), ("SQuAD", "SQuAD"), ("own", "Yours"), ("growth", "Compute"))
FIELDS = ("metric", "target", "goal", "price", "spot")
METRICS = {"top5Accuracy": "{} % top-5 accuracy", "top1Accuracy": "{} % accuracy", "f1Score": "an F1 of {}"}
"""DAWNBench's metrics in words."""
LEDE = "Who reached a target fastest and cheapest, and what made the difference."
ASK = (
    "Set a target for your runs: a logged metric (empty: the training loss) and its value. Hours "
    "count from the start of a run to the first value at or past it."
)
CARDS = {"cost-money": "cost-money-figure", "cost-records": "cost-records-figure", "cost-growth": "cost-growth-figure"}
CHANGED = (
    Output("cost-figures", "data"),
    Output("cost-sentence", "children"),
    Output("cost-empty", "children"),
    Output("cost-board", "hidden"),
    Output("cost-compute", "hidden"),
    Output("cost-form", "hidden"),
    Output("cost-table", "children"),
    Output("cost-steps", "children"),
    Output("cost-factors", "children"),
    Output("cost-compute-table", "children"),
    Output("cost-devices-words", "children"),
    Output("cost-devices", "children"),
    Output("cost-source", "children"),
    *(Output(f"{figure}-sentence", "children") for figure in CARDS.values()),
    Output("cost-head", "children"),
)
NOT_DRAWN = (no_update, no_update, no_update)


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del refresh_seconds
    height = cost.NARROW_HEIGHT if narrow else cost.HEIGHT
    tabs = dmc.SegmentedControl(
        id="cost-tab",
        data=[{"value": value, "label": label} for value, label in TABS],
        value=TABS[0][0],
        size="xs",
        **aria({"aria-label": "Which trainings"}),
    )
    body = [
        html.Div(
            [html.H1(TITLE, id="cost-head", className="h1"), html.Span(className="sp"), tabs], className="row wrap"
        ),
        html.P(LEDE, id="cost-sentence", className="lede mb12"),
        html.Div(_form(), id="cost-form", className="row wrap mb12", hidden=True),
        html.Div(id="cost-empty"),
        html.Div(_board_cards(height), id="cost-board", className="grid cols two"),
        html.Div(_compute_cards(height), id="cost-compute", className="grid", hidden=True),
        html.P(id="cost-source", className="dim small mt16"),
        dcc.Store(id="cost-view"),
        dcc.Store(id="cost-figures"),
    ]
    return shell.page([html.B(TITLE)], body)


def _form() -> list[Child]:
    """What runs have to reach, and what machines cost where nobody has said."""
    return [
        dmc.TextInput(id="cost-metric", label="Metric", placeholder="training loss", size="xs", w=150),
        dmc.NumberInput(id="cost-target", label="Target", size="xs", w=110),
        dmc.Select(
            id="cost-goal",
            label="Better is",
            data=[{"value": "min", "label": "lower"}, {"value": "max", "label": "higher"}],
            value="min",
            allowDeselect=False,
            size="xs",
            w=100,
        ),
        dmc.NumberInput(id="cost-price", label="USD a device-hour, if unsaid", min=0, size="xs", w=170),
        dmc.NumberInput(id="cost-spot", label="Interruptible price share", min=0, max=1, step=0.1, size="xs", w=160),
        html.Button("Show", id="cost-show", className="btn", type="button"),
    ]


def _board_cards(height: int) -> list[Child]:
    return [
        card(
            "Time against money",
            "USD on demand over hours, both log · filled and line: none is as fast and as cheap",
            figure_box(CARDS["cost-money"], card_id="cost-money", height=height),
            card_id="cost-money",
            is_figure=True,
        ),
        card(
            "Records",
            "Hours to the target, log · line: the best so far",
            figure_box(CARDS["cost-records"], card_id="cost-records", height=height),
            card_id="cost-records",
            is_figure=True,
        ),
        card(
            "Improvement",
            "Hours or USD before, divided by after",
            html.Div(id="cost-factors", className="scrollx-in scrolly tall", tabIndex="0"),
            card_id="cost-factors-card",
            has_table=True,
        ),
        card(
            "What made it faster",
            "From record to record · factors multiply to the speed-up",
            html.Div(id="cost-steps", className="scrollx-in scrolly tall", tabIndex="0"),
            card_id="cost-steps-card",
            has_table=True,
        ),
        card(
            "Leaderboard",
            "Fastest first · the price of each says where it comes from",
            html.Div(id="cost-table", className="scrollx-in", tabIndex="0"),
            card_id="cost-table-card",
            class_name="whole",
            has_table=True,
        ),
    ]


def _compute_cards(height: int) -> list[Child]:
    return [
        card(
            "Compute of your runs",
            "PF-days, log · line: fit, dotted: published doubling times of 3.4 and 3.5 months",
            figure_box(CARDS["cost-growth"], card_id="cost-growth", height=height),
            card_id="cost-growth",
            is_figure=True,
        ),
        card(
            "Runs",
            "Newest first · 6 × parameters × units, or device-hours × peak × utilisation, as each says",
            html.Div(id="cost-compute-table", className="scrollx-in", tabIndex="0"),
            card_id="cost-compute-card",
            has_table=True,
        ),
        card(
            "Devices over the years",
            "By their makers' data sheets · peak in the fastest format that trains",
            [html.P(id="cost-devices-words"), html.Div(id="cost-devices", className="scrollx-in", tabIndex="0")],
            card_id="cost-devices-card",
            has_table=True,
        ),
    ]


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: address and fields, and the board or the growth that they name."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "paintAll"),
        [Output(figure, "figure") for figure in CARDS.values()],
        Input("cost-figures", "data"),
        Input("theme", "data"),
        State("palettes", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "costView"),
        Output("cost-view", "data"),
        Output("cost-tab", "value"),
        *(Output(f"cost-{name}", "value") for name in FIELDS),
        Input("address", "search"),
        Input("cost-tab", "value"),
        Input("cost-show", "n_clicks"),
        *(State(f"cost-{name}", "value") for name in FIELDS),
        State("cost-view", "data"),
    )

    @app.callback(*CHANGED, Input("cost-view", "data"), State("narrow", "data"))
    async def load_cost(view: dict[str, Any] | None, narrow: bool) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor, tab = visitor_headers(ctx.headers), view["tab"]
        if tab == "own" and view["target"] is None:
            return *_nothing(ASK, has_form=True), TITLE
        try:
            if tab == "growth":
                return *of_growth(await api.compute_growth(visitor, {}), narrow=narrow), TITLE
            if tab == "own":
                board = await api.leaderboard(visitor, own_query(view))
            else:
                board = await api.submissions(visitor, {"task": tab})
            return *of_board(board, narrow=narrow, is_own=tab == "own"), headline(board)
        except ApiProblem as problem:
            return *_nothing(LEDE, has_form=tab == "own", empty=states.not_loaded(problem)), TITLE


def own_query(view: Mapping[str, Any]) -> dict[str, Any]:
    """What the API is asked for runs of one's own."""
    asked = {
        "target": view["target"],
        "metric": view["metric"],
        "goal": view["goal"],
        "usd_per_device_hour": view["price"] or None,
        "spot_price_share": view["spot"] or None,
        "project": view["project"],
        "task": view["task"],
    }
    return {name: value for name, value in asked.items() if value is not None}


def _nothing(sentence: str, *, has_form: bool, empty: Children = None) -> tuple[Any, ...]:
    """No board: what to do, or what went wrong."""
    return (no_update, sentence, empty, True, True, not has_form, *(no_update for _ in range(6)), "", *NOT_DRAWN)


def of_board(board: Board, *, narrow: bool, is_own: bool) -> tuple[Any, ...]:
    """What the page shows of a board."""
    if not board.rows:
        return _nothing(empty_words(board), has_form=is_own)
    drawn = {
        "money-figure": cost.time_against_money(board, narrow=narrow),
        "records-figure": cost.records_over_time(board, narrow=narrow),
    }
    source = board.source or " ".join(board.assumptions)
    return (
        drawn,
        sentence(board),
        None,
        False,
        True,
        not is_own,
        tables.of_trainings(board.rows),
        tables.of_steps(board.steps),
        tables.of_factors(board.factors, board.same_hardware, board),
        no_update,
        no_update,
        no_update,
        f"{'Prices of your runs' if is_own else 'Prices as submitted'}: not adjusted for year or region. {source}",
        *figure_words(board),
        no_update,
    )


def headline(board: Board) -> str:
    """How fast and how cheap the target was reached; the page's name where nothing has reached it."""
    if not board.rows:
        return TITLE
    said = f"Fastest {duration(min(one.hours for one in board.rows) * SECONDS)}"
    prices = [one.usd for one in board.rows if one.usd is not None]
    return f"{said}, cheapest {money(min(prices))}" if prices else said


def target_words(board: Board) -> str:
    """The target as people say it: "93 % top-5 accuracy"; a metric of one's own under its own name."""
    words = METRICS.get(board.metric)
    return f"{board.metric} {exactly(board.target)}" if words is None else words.format(exactly(board.target))


def sentence(board: Board) -> str:
    """Who is fastest, who is cheapest."""
    fastest = min(board.rows, key=lambda one: one.hours)
    priced = [one for one in board.rows if one.usd is not None]
    said = f"To {target_words(board)}: {duration(fastest.hours * SECONDS)} on {fastest.name}"
    if priced:
        cheapest = min(priced, key=lambda one: one.usd or 0.0)
        said += f", {money(cheapest.usd)} on {cheapest.name}"
    shown = f" {count(len(board.rows))} trainings, {count(len(board.rows) - len(priced))} of them without a price."
    return f"{said}.{shown}"


def empty_words(board: Board) -> str:
    """That nothing reached the target."""
    return (
        f"None of {count(board.num_runs or 0)} runs reached {board.metric} {exactly(board.target)}: "
        "take a target that some have passed."
    )


def figure_words(board: Board) -> tuple[str, str]:
    """Both figures in words."""
    front = [one for one in board.rows if one.is_on_front]
    front_said = "; ".join(f"{one.name}: {duration(one.hours * SECONDS)}, {money(one.usd)}" for one in front)
    line = "; ".join(f"{one.day}: {duration(one.value * SECONDS)}" for one in board.records)
    return f"On the front: {front_said or 'none, as no price is known'}.", f"Records: {line}."


def of_growth(found: ComputeGrowth, *, narrow: bool) -> tuple[Any, ...]:
    """What the page shows of the growth of compute."""
    if not found.runs:
        said = "No run's compute is known yet: add num_parameters to a run's config, or say its devices."
        return _nothing(said, has_form=False)
    drawn = {"growth-figure": cost.compute_over_time(found, narrow=narrow)}
    return (
        drawn,
        growth_sentence(found),
        None,
        True,
        False,
        True,
        no_update,
        no_update,
        no_update,
        tables.of_compute(found.runs),
        tables.trend_words(found.device_trend),
        tables.of_devices(found.devices),
        f"{found.published_source}. {found.peaks_source} {count(found.num_left_out)} runs are left out: "
        f"{found.why_left_out}.",
        no_update,
        no_update,
        growth_sentence(found),
    )


def growth_sentence(found: ComputeGrowth) -> str:
    """How fast compute doubles, and what part is money."""
    said = tables.months_words(found.growth, "Compute of a run")
    if found.spending is None or found.per_usd is None or found.of_priced is None:
        return f"{said} Price and willingness to pay cannot be parted: too few runs have a price."
    slopes = [significant(one.doublings_per_year.value, 2) for one in (found.of_priced, found.spending, found.per_usd)]
    return (
        f"{said} Of {slopes[0]} doublings a year over runs with a price, spending makes {slopes[1]} and compute "
        f"per USD {slopes[2]}."
    )
