"""What searching cost: every trial of a sweep, the best of n of them, and B_crit with fewer."""

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.cost import Bill, FewerTrials, OfBatchSize, SearchCost
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card
from noisescale_dashboard.words.number_format import NOTHING, count, duration, money, rate, ratio, significant, span

CARD = "sweep-search-card"
SECONDS = 3600
NEAR = 1.1
"""Of the fewest steps: a trial so good is as good as the best."""
HEADS = ("Batch", "Rates tried", "Best rate", "One at random", "Random", "Grid", "Informed")
FEWER_HEADS = ("Trials a batch size", "B_crit", "8 of 10 draws")


def layout() -> html.Section:
    """The card before its first data."""
    return card(
        "What searching cost",
        "Trials until the best is within 10 % of the fewest steps · at random: median",
        [html.P(id="sweep-search-words"), html.Div(id="sweep-search", className="scrollx-in", tabIndex="0")],
        card_id=CARD,
        class_name="whole search-card",
        has_table=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads it once the sweep is shown."""

    @app.callback(
        Output("sweep-search-words", "children"),
        Output("sweep-search", "children"),
        Input("sweep-shown", "data"),
        State("sweep-id", "data"),
    )
    async def load_search(shown: dict[str, Any] | None, sweep_id: str) -> tuple[str, list[Child]]:
        if not shown or shown["kind"] != "sweep":
            raise PreventUpdate
        try:
            found = await api.search_cost(visitor_headers(ctx.headers), sweep_id, {"target": shown["target"]})
        except ApiProblem as problem:
            return f"not loaded: {problem.title}", []
        return bill_words(found.bill), tables(found)


def bill_words(bill: Bill) -> str:
    """All trials in hours and USD, against the best one alone."""
    said = f"{count(bill.num_trials)} trials, {count(bill.num_infeasible)} of them diverged."
    if not bill.num_timed:
        return f"{said} Hours are known of none: only their curves were sent."
    known = "" if bill.num_timed == bill.num_trials else f" ({count(bill.num_timed)} of them timed)"
    price = "no price is known"
    if bill.usd is not None:
        price = f"{money(bill.usd)}" + ("" if bill.num_priced == bill.num_timed else f" for {bill.num_priced} of them")
    said += (
        f" They took {duration(bill.hours * SECONDS)}{known}, {significant(bill.device_hours)} device-hours, {price}."
    )
    if bill.winner_hours is not None:
        its_price = "" if bill.winner_usd is None else f", {money(bill.winner_usd)}"
        said += f" The best alone took {duration(bill.winner_hours * SECONDS)}{its_price}."
    return f"{said} Prices: {'; '.join(bill.prices_said)}."


def tables(found: SearchCost) -> list[Child]:
    """The search at each batch size, then B_crit with fewer trials."""
    if not found.sizes:
        return [html.P("Without a target no trial is better than another.", className="t2")]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in HEADS]))
    rows = html.Tbody([_row(one) for one in found.sizes])
    return [html.Table([head, rows], className="tb"), *_fewer(found.critical_batches)]


def _row(one: OfBatchSize) -> html.Tr:
    first = one.best_of[0].median if one.best_of else None
    cells = (
        count(one.num_rates),
        rate(one.best_rate),
        NOTHING if first is None or one.best_steps is None else f"{ratio(first / one.best_steps)} the steps",
        *(trials_needed(order, one.best_steps) for order in (
            one.strategies.random, one.strategies.grid, one.strategies.informed,
        )),
    )  # fmt: skip
    return html.Tr([html.Th(count(one.batch_size), scope="row"), *(html.Td(cell, className="num") for cell in cells)])


def trials_needed(order: Sequence[float | None], best: float | None) -> str:
    """The fewest trials whose best is within 10 % of the best of all."""
    if best is None:
        return NOTHING
    near = (n for n, steps in enumerate(order, start=1) if steps is not None and steps <= NEAR * best)
    return count(next(near, None))


def _fewer(found: Sequence[FewerTrials]) -> list[Child]:
    if not found:
        return [html.P("Fewer than three batch sizes reach the target: no B_crit.", className="t2")]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in FEWER_HEADS]))
    rows = [
        html.Tr(
            [
                html.Th(count(one.num_trials), scope="row"),
                html.Td("no bend" if one.median is None else count(round(one.median)), className="num"),
                html.Td(_between(one), className="num"),
            ]
        )
        for one in found
    ]
    return [html.Table([head, html.Tbody(rows)], className="tb mt16")]


def _between(one: FewerTrials) -> str:
    """Eight draws of ten; an end beyond the batch sizes that were tried is open."""
    if one.low is None and one.high is None:
        return NOTHING
    if one.low is None:
        return f"up to {significant(one.high)}"
    return f"from {significant(one.low)}" if one.high is None else span(one.low, one.high)
