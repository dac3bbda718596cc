"""Where a run's time goes by the shares that it logs, the cheapest lever, and which techniques it uses."""

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.cost import Technique, TimeOfRun
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card
from noisescale_dashboard.words.number_format import count, ratio, share

CARD = "run-time-card"
HEADS = ("Part", "Of a step", "Speed-up at most", "What to do")
ANSWERS = {"yes": "used", "no": "not used", "unknown": "unknown"}


def layout() -> html.Section:
    """The card before its first data."""
    return card(
        "Where the time goes",
        "Shares of a step's wall time, mean of the newest hundred · cheapest lever first",
        [html.P(id="run-time-words"), html.Div(id="run-time", className="scrollx-in", tabIndex="0")],
        card_id=CARD,
        has_table=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads it, once a minute while the run goes on."""

    @app.callback(
        Output("run-time-words", "children"),
        Output("run-time", "children"),
        Input("run-slow-pulse", "data"),
        State("run-id", "data"),
    )
    async def load_time(pulse: float | None, run_id: str) -> tuple[str, list[Child]]:
        if pulse is None:
            raise PreventUpdate
        try:
            found = await api.time_of_run(visitor_headers(ctx.headers), run_id)
        except ApiProblem as problem:
            return f"not loaded: {problem.title}", []
        return words(found), [*_levers(found), _techniques(found.techniques)]


def words(found: TimeOfRun) -> str:
    """The cheapest lever, or what to log; then what the memory allows."""
    if not found.shares:
        each = f"log_metrics({{'{found.missing[0]}': 0.6}})"
        said = (
            f"This run logs no shares of its time: log that of each part, {each}, and the cheapest lever stands here."
        )
    elif not found.levers:
        said = "No part of a step is large enough to be worth a change."
    else:
        first = found.levers[0]
        most = ratio(first.most_times)
        said = f"The cheapest lever is {first.share_of}, {first.effort_said}: {first.what}. It brings {most} at most."
    memory = found.memory
    held = "" if memory.micro_batch is None else f" A pass holds {count(memory.micro_batch)} examples"
    size = "" if memory.memory_gb is None else f" on {memory.memory_gb:g} GB of a {memory.device}"
    return f"{said}{held}{size if held else ''}{'.' if held else ''} {memory.said}"


def _levers(found: TimeOfRun) -> list[Child]:
    if not found.levers:
        return []
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in HEADS]))
    rows = [
        html.Tr(
            [
                html.Th(one.share_of, scope="row"),
                html.Td(share(one.share), className="num"),
                html.Td(ratio(one.most_times), className="num"),
                html.Td(f"{one.what} ({one.effort_said})"),
            ]
        )
        for one in found.levers
    ]
    rest = [html.Tr([html.Th("not logged", scope="row"), html.Td(share(found.unexplained)), html.Td(""), html.Td("")])]
    return [html.Table([head, html.Tbody([*rows, *rest])], className="tb cost-words cost-levers")]


def _techniques(found: Sequence[Technique]) -> html.Details:
    """The checklist, each with what says so; folded away, as most runs say little of it."""
    rows: list[Any] = [
        html.Tr([html.Th(one.name, scope="row"), html.Td(ANSWERS.get(one.answer, one.answer)), html.Td(one.basis)])
        for one in found
    ]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("Technique", "Here", "What says so")]))
    table = html.Table([head, html.Tbody(rows)], className="tb cost-words cost-parts")
    used, unknown = (sum(one.answer == answer for one in found) for answer in ("yes", "unknown"))
    summary = f"{len(found)} ways to train faster: {used} used here, {unknown} not known"
    return html.Details([html.Summary(summary), table], className="mt16")
