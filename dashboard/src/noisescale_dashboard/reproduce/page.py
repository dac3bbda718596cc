"""What `noisescale reproduce` found: does the noise scale predict the critical batch size, and was the advice good?"""

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Json
from noisescale_dashboard.answers.reproductions import Reproduction, comparison
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.compare import tasks as compare_tasks
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.figures.comparison import noise_scale_against_critical_batch as scatter
from noisescale_dashboard.reproduce import tables as reproduce_tables
from noisescale_dashboard.reproduce import words as reproduction_sentences
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, figure_box, link

NOTHING_SHOWN = "nothing-shown"
"""Class of the page that has words alone; assets/58-reproduce.css hides its cards."""
ONLY_ADVICE = "only-advice"
COMMANDS = """pip install ./client "./lab[reproduce]" torch    # in a checkout of noisescale
noisescale reproduce --quick             # the claim
noisescale reproduce --advice --quick    # what the advice is worth
"""
NUM_LISTED = 50
CHANGED = (
    Output("reproduce-head", "children"),
    Output("reproduce-lede", "children"),
    Output("reproduce-missing", "children"),
    Output("reproduce-body", "className"),
    Output("reproduce-figures", "data"),
    Output("reproduce-key", "children"),
    Output("reproduce-scatter-card-footer", "children"),
    Output("reproduce-scatter-sentence", "children"),
    Output("reproduce-statistics", "children"),
    Output("reproduce-exclusions", "children"),
    Output("reproduce-more", "children"),
)
"""What the callback of the page sets; what it does not name stays as it is."""


def layout(reproduction_id: str | None, *, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself.

    Args:
        reproduction_id: Of the address; None: the newest claim, and the newest advice.
        narrow: Whether this is a phone.
        refresh_seconds: As every page is told.
    """
    del refresh_seconds
    body = html.Div(
        [
            html.Div(
                [
                    html.H1(
                        "Does the noise scale predict the critical batch size?", id="reproduce-head", className="h1"
                    ),
                    html.P("", id="reproduce-lede", className="lede"),
                ],
                className="head mb16",
            ),
            html.Div(id="reproduce-missing"),
            html.Div(_claim_cards(narrow=narrow), className="grid compare-columns of-claim mb16"),
            html.Div(id="reproduce-more", className="grid reproduce-more"),
        ],
        id="reproduce-body",
        className="loading",
    )
    stores = [dcc.Store(id="reproduce-asked", data=reproduction_id or ""), dcc.Store(id="reproduce-figures")]
    return shell.page([html.B("Reproduce")], [body, *stores])


def _claim_cards(*, narrow: bool) -> list[Child]:
    figure = card(
        "Critical batch against noise scale",
        "Log–log, each task in its own unit · whiskers: 95 %",
        figure_box(
            "reproduce-scatter",
            card_id="reproduce-scatter-card",
            height=scatter.NARROW_HEIGHT if narrow else scatter.HEIGHT,
        ),
        card_id="reproduce-scatter-card",
        actions=[html.Div(id="reproduce-key", className="row wrap key")],
        footer=[],
        is_figure=True,
        class_name="scatter-card",
    )
    statistics = card(
        "How well it predicts",
        "Logarithms, over tasks · interval: tasks drawn again",
        html.Div(id="reproduce-statistics"),
        card_id="reproduce-statistics-card",
        has_table=True,
        class_name="statistics-card",
    )
    exclusions = card(
        "What is left out",
        "Targets and tasks, each with its reason",
        html.Div(id="reproduce-exclusions"),
        card_id="reproduce-exclusions-card",
    )
    return [figure, html.Div([statistics, exclusions], className="grid stack")]


def register(app: Dash, api: ApiClient) -> None:
    """The callbacks that read and draw what is stored."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "paintAll"),
        [Output("reproduce-scatter", "figure")],
        Input("reproduce-figures", "data"),
        Input("theme", "data"),
        State("palettes", "data"),
    )

    @app.callback(*CHANGED, Input("reproduce-asked", "data"), State("narrow", "data"))
    async def load(asked: str | None, narrow: bool) -> tuple[Any, ...]:
        if asked is None:
            raise PreventUpdate
        try:
            changes = await _read(api, asked, narrow=narrow)
        except ApiProblem as problem:
            shown = no_such_reproduction() if problem.is_missing else states.not_loaded(problem)
            changes = _nothing(shown)
        return tuple(changes.get(f"{one.component_id}.{one.component_property}", no_update) for one in CHANGED)


async def _read(api: ApiClient, asked: str, *, narrow: bool) -> dict[str, Any]:
    visitor = visitor_headers(ctx.headers)
    listed = (await api.reproductions(visitor, {"limit": NUM_LISTED})).reproductions
    if asked:
        ids = [asked]
    else:
        newest = {one.kind: one.id for one in reversed(listed)}
        ids = [newest[kind] for kind in ("claim", "advice") if kind in newest]
    if not ids:
        return _nothing(no_reproductions())
    return changes_of([await api.reproduction(visitor, one) for one in ids], listed, narrow=narrow)


def changes_of(shown: list[Reproduction], listed: tuple[Reproduction, ...], *, narrow: bool) -> dict[str, Any]:
    """What the page shows.

    Args:
        shown: One reproduction, or a claim and advice.
        listed: All that are stored, newest first.
        narrow: Whether this is a phone.
    """
    claims = [one.claim for one in shown if one.claim is not None]
    changes = _claim(claims[0], narrow=narrow) if claims else _without_claim()
    more: list[Child] = []
    for one in shown:
        if one.claim is not None:
            more += claim_tables(one.claim)
        if one.advice is not None:
            more += advice_tables(one.advice)
    origins = " · ".join(f"{one.kind.capitalize()}: {reproduction_sentences.origin_words(one)}" for one in shown)
    changes["reproduce-lede.children"] += f" {origins}."
    changes["reproduce-more.children"] = [*more, *stored(listed, shown)]
    return changes


def _claim(claim: Json, *, narrow: bool) -> dict[str, Any]:
    compared = comparison(claim)
    rows = [row for row in compare_sentences.statistics_rows(compared) if row[0] != "κ, median"]
    return {
        "reproduce-head.children": compare_sentences.tasks_headline(compared),
        "reproduce-lede.children": reproduction_sentences.figures_words(compared),
        "reproduce-missing.children": None,
        "reproduce-body.className": "",
        "reproduce-figures.data": {"scatter": scatter.noise_scale_against_critical_batch(compared, narrow=narrow)},
        "reproduce-key.children": compare_tasks.key(compared),
        "reproduce-scatter-card-footer.children": reproduction_sentences.figure_caption(compared),
        "reproduce-scatter-sentence.children": compare_sentences.scatter_sentence(compared),
        "reproduce-statistics.children": compare_tasks.statistics_table(rows, "Here"),
        "reproduce-exclusions.children": html.Ul(
            [html.Li(line) for line in claim["exclusions"]] or [html.Li("Everything counts.")], className="notes said"
        ),
    }


def _without_claim() -> dict[str, Any]:
    return {
        "reproduce-head.children": "What was the advice worth?",
        "reproduce-lede.children": "",
        "reproduce-missing.children": None,
        "reproduce-body.className": ONLY_ADVICE,
    }


def claim_tables(claim: Json) -> list[Child]:
    """All tables beside the headline, a card each."""
    targets = card(
        "Targets",
        "Each in its task's unit · 95 %: of the noise scale the scatter of the measuring, not that of other seeds",
        reproduce_tables.targets(claim),
        card_id="reproduce-targets-card",
        has_table=True,
    )
    series = card(
        "Every choice of tasks",
        "Brackets: 95 %, tasks drawn again · r² is governed by the span: read it with the rms factor",
        reproduce_tables.all_figures(claim),
        card_id="reproduce-series-card",
        has_table=True,
    )
    small = [
        card(
            one.title,
            one.subtitle,
            one.table(claim),
            card_id=one.card_id,
            footer=one.footer(claim) if one.footer else None,
            has_table=True,
        )
        for one in reproduce_tables.CLAIMS
    ]
    # a table of dashes says nothing: fewer than five tasks have none of these figures
    own = [one for one in claim["series"] if one["average"] != "published"]
    known = [series] if any(one["agreement"] is not None for one in own) else []
    return [targets, *known, html.Div(small, className="grid cols two")]


def advice_tables(advice: Json) -> list[Child]:
    """Both tables of the advice."""
    policies = card(
        "What the advice was worth",
        "Regret in %, median / p90, over the best constant batch · brackets: 95 %, tasks drawn again",
        reproduce_tables.policies(advice),
        card_id="reproduce-policies-card",
        footer=reproduction_sentences.advice_words(advice),
        has_table=True,
    )
    half_way = card(
        "Recommendations half-way",
        "At shares of runs that nobody advised · brackets: 95 %, tasks drawn again",
        reproduce_tables.recommendations(advice),
        card_id="reproduce-recommendations-card",
        has_table=True,
    )
    return [policies, half_way]


def stored(listed: tuple[Reproduction, ...], shown: list[Reproduction]) -> list[Child]:
    """The others that are stored, with their addresses; nothing where there are none."""
    here = {one.id for one in shown}
    if not {one.id for one in listed} - here:
        return []
    rows = [
        html.Li(
            link(
                f"{one.kind.capitalize()}: {reproduction_sentences.origin_words(one)}",
                f"/reproduce/{one.id}",
                class_name="u",
                is_current=one.id in here,
            )
        )
        for one in listed
    ]
    return [
        card(
            "Stored reproductions",
            f"The newest {NUM_LISTED}, newest first",
            html.Ul(rows, className="notes said"),
            card_id="reproduce-stored-card",
        )
    ]


def _nothing(shown: html.Section) -> dict[str, Any]:
    return {"reproduce-missing.children": shown, "reproduce-body.className": NOTHING_SHOWN}


def no_reproductions() -> html.Section:
    """What will be here, and the commands that make it, where nothing is stored."""
    return html.Section(
        [
            html.H2("No reproduction yet", className="tt"),
            html.P(
                "Small real trainings test on your own machine whether the noise scale predicts the critical batch "
                "size. Where this server answers, what they find is shown here; the short way takes some minutes.",
                className="t2",
            ),
            html.Pre(COMMANDS, className="mono code", tabIndex="0"),
            html.P(link("See the published tasks", "/compare?tab=tasks", class_name="btn")),
        ],
        className="card empty",
    )


def no_such_reproduction() -> html.Section:
    """The address names none."""
    return html.Section(
        [
            html.H2("No such reproduction", className="tt"),
            html.P("It was deleted, the address is wrong, or it belongs to someone else.", className="t2"),
            html.P(link("The newest one", "/reproduce", class_name="btn")),
        ],
        className="card empty",
    )
