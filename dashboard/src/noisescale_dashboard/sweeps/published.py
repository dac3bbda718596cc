"""Published sweeps, fitted by the same code as one's own: a table of workloads, and the points of one."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.sweeps import PublishedModelBatch, PublishedSweep
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.sweeps import published_sweep
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, figure_box, link
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import count, si, significant

LEDE = (
    "MLPerf's reference runs and papers on language models give the data to a target at several batch sizes, fitted as "
    "your own sweeps are. Where they set only a bound no number is given; what speaks against a fit stands beside it."
)
CARD = "published-card"
BATCH_COLUMNS = ("Model", "B_crit, tokens")
CHANGED = (
    Output("published-figures", "data"),
    Output("published-table", "children"),
    Output("published-source", "children"),
    Output(f"{CARD}-title", "children"),
    Output(f"{CARD}-subtitle", "children"),
    Output(f"{CARD}-footer", "children"),
    Output("published-sweep-sentence", "children"),
    Output("published-batches", "children"),
)


def layout(*, narrow: bool) -> list[Child]:
    """Both cards before their first data."""
    height = published_sweep.NARROW_HEIGHT if narrow else published_sweep.HEIGHT
    workloads = card(
        "Workloads",
        "B_crit in the benchmark's examples, 95 % interval",
        html.Div(id="published-table", className="scrollx-in scrolly tall", tabIndex="0"),
        card_id="published-list",
        footer=html.Span(id="published-source"),
        has_table=True,
    )
    points = card(
        "Data to the target",
        "",
        figure_box("published-sweep", card_id=CARD, height=height),
        card_id=CARD,
        footer=[],
        is_figure=True,
    )
    batches = card(
        "Critical batches of language models",
        "Tokens, read in the source or computed from its table of runs",
        html.Div(id="published-batches", className="scrollx-in scrolly", tabIndex="0"),
        card_id="published-batches-card",
        class_name="whole",
        has_table=True,
    )
    return [
        html.Div([points, workloads, batches], className="grid cols two published"),
        dcc.Store(id="published-figures"),
    ]


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads and draws them once their tab is open."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "paintAll"),
        [Output("published-sweep", "figure")],
        Input("published-figures", "data"),
        Input("theme", "data"),
        State("palettes", "data"),
    )

    @app.callback(*CHANGED, Input("sweeps-view", "data"), State("narrow", "data"))
    async def load_published(view: dict[str, Any] | None, narrow: bool) -> tuple[Any, ...]:
        if view is None or view["tab"] != "published":
            raise PreventUpdate
        try:
            known = await api.published_sweeps(visitor_headers(ctx.headers))
        except ApiProblem as problem:
            said = f"not loaded: {problem.title}"
            return no_update, states.not_loaded(problem), no_update, no_update, said, no_update, no_update, said
        chosen = chosen_sweep(known.sweeps, view["workload"])
        if chosen is None:
            said = "The server has no published sweeps."
            return no_update, said, no_update, no_update, said, no_update, no_update, no_update
        return (
            {"sweep": published_sweep.published_sweep(chosen, narrow=narrow)},
            table(known.sweeps, chosen),
            chosen.source or f"{known.source}, {known.licence}",
            f"Data to the target: {chosen.workload}",
            subtitle(chosen),
            footer(chosen),
            sentence(chosen),
            batches_table(known.critical_batches),
        )


def subtitle(sweep: PublishedSweep) -> str:
    """What is drawn, in which unit."""
    about = f"{sweep.suite}, {sweep.version}"
    if sweep.tokens_per_example is None:
        return f"{sweep.unit.capitalize()}, log · whiskers: standard error · {about}"
    return f"Sequences of {sweep.tokens_per_example} tokens, log · best run of each batch size, no repeats · {about}"


def batches_table(batches: Sequence[PublishedModelBatch]) -> Child:
    """A row a critical batch, its source and definition behind it."""
    if not batches:
        return "The server has none."
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in BATCH_COLUMNS]))
    rows = [html.Tr([html.Td(cell) for cell in _batch(one)]) for one in batches]
    return html.Table([head, html.Tbody(rows)], className="tb list short")


def _batch(one: PublishedModelBatch) -> tuple[list[Child], list[Child]]:
    about = f"{one.optimizer} · {one.source} · {one.definition}. {one.evidence[:1].upper()}{one.evidence[1:]}."
    known = html.Span(si(one.critical_batch_tokens), className="s")
    to_target = html.Span(f"{si(one.tokens)} tokens to the target", className="below")
    return [f"{one.task}, {one.num_parameters}", html.Span(about, className="below")], [known, to_target]


def chosen_sweep(sweeps: Sequence[PublishedSweep], workload: str | None) -> PublishedSweep | None:
    """The workload of this name, else the first of the list."""
    named = [sweep for sweep in sweeps if sweep.workload == workload]
    return next(iter((*named, *clearest_first(sweeps))), None)


def clearest_first(sweeps: Sequence[PublishedSweep]) -> list[PublishedSweep]:
    """Fits that nothing speaks against, then the other fits, then those that were refused: as they are otherwise."""
    return sorted(sweeps, key=lambda one: 2 if one.fit is None else bool(one.fit.lack_of_fit.findings))


def table(sweeps: Sequence[PublishedSweep], chosen: PublishedSweep) -> html.Table:
    """A row of two lines a workload; its name chooses it."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("Workload", "B_crit, 95 %")]))
    rows = [_row(sweep, is_chosen=sweep is chosen) for sweep in clearest_first(sweeps)]
    return html.Table([head, html.Tbody(rows)], className="tb list short")


def _row(sweep: PublishedSweep, *, is_chosen: bool) -> html.Tr:
    sizes = [point.batch_size for point in sweep.points]
    address = f"/sweeps?tab=published&workload={quote(sweep.workload)}"
    name = link(sweep.workload, address, class_name="chosen" if is_chosen else "", is_current=is_chosen)
    version = f"{sweep.suite.removeprefix('MLPerf ')} {sweep.version}"
    about = f"{version} · {len(sizes)} batch sizes, {count(min(sizes))} to {count(max(sizes))}"
    between, doubt = sweep_sentences.between_words(sweep), sweep_sentences.doubt_words(sweep)
    found = html.Span(sweep_sentences.found_words(sweep), className="s" if sweep.fit is not None else "dim")
    return html.Tr(
        [
            html.Td([name, html.Span(about, className="below")]),
            html.Td([found, html.Span(f"{between} · {doubt}" if doubt else between, className="below")]),
        ]
    )


def footer(sweep: PublishedSweep) -> str:
    """Whether the sweep turns at small batches and what speaks against its fit, or why there is none."""
    if sweep.fit is not None:
        turn = sweep_sentences.turn_words(sweep.fit)
        if not turn and sweep.has_room_for_turn:
            turn = "Data to the target do not rise towards small batches beyond their scatter."
        return " ".join(filter(None, [turn, *sweep_sentences.lack_of_fit_words(sweep.fit.lack_of_fit)]))
    return sweep_sentences.true_minus(sweep.refusal.explanation) if sweep.refusal is not None else ""


def sentence(sweep: PublishedSweep) -> str:
    """The figure in words."""
    first, last = sweep.points[0], sweep.points[-1]
    known = sweep_sentences.bounds_words(sweep.critical_batch) or "not known"
    return (
        f"{sweep.workload}: {significant(first.to_target_mean)} {sweep.unit} to the target at batch "
        f"{count(first.batch_size)}, {significant(last.to_target_mean)} at batch {count(last.batch_size)}. "
        f"Critical batch {known}."
    )
