"""How to follow a recommendation: the batches for the rest of the run, as trainers take them, and what else to set."""

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.advice import Change, Recommendation, Stage
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.run import limits as plan_limits
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import icon
from noisescale_dashboard.words.decisions import MOVES
from noisescale_dashboard.words.number_format import NOTHING, count, rate, share, significant, unbroken
from noisescale_dashboard.words.trainers import CHOICES, PLAIN, TRAINERS, in_plain_words


def layout() -> html.Div:
    """Schedule and folds before their first data; what a reader has opened stays open when the data change."""
    return html.Div(
        [
            html.Div(id="run-advice-schedule"),
            html.Details(
                [html.Summary("What else to set with the batch"), html.Div(id="run-advice-rescaling")],
                id="run-advice-rescaling-fold",
                className="more fold",
                hidden=True,
            ),
        ]
    )


def copy_button() -> html.Div:
    """The one button of the card: batch, rate and schedule in the words of a trainer."""
    choices = [
        html.Button([icon("copy", "sm"), name], id=f"run-copy-{word}", type="button") for word, name in CHOICES.items()
    ]
    menu = html.Details(
        [
            html.Summary([icon("copy", "sm"), "Copy for my trainer", icon("chev", "xs")], className="btn"),
            html.Div(choices, className="dropdown"),
        ],
        className="details copy-menu",
    )
    said = html.P(id="run-flags-said", className="dim small", role="status")
    return html.Div(
        [menu, said, html.Pre(id="run-flags-text", className="code", hidden=True, tabIndex="0")],
        id="run-advice-copy",
        hidden=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that has the API write the schedule for a trainer, and the copying in the browser."""

    @app.callback(
        Output("run-flags", "data"),
        *(Input(f"run-copy-{word}", "n_clicks") for word in CHOICES),
        State("run-pref-view", "data"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    async def write_flags(*given: Any) -> dict[str, Any]:
        *_clicks, view, run_id = given
        word = str(ctx.triggered_id or "").removeprefix("run-copy-")
        if view is None or word not in CHOICES:
            raise PreventUpdate
        visitor, limits = visitor_headers(ctx.headers), plan_limits.asked(view)
        try:
            advice = await api.recommendation(visitor, run_id, view["pref"], limits)
            if word == PLAIN or advice.schedule is None:
                return {"text": in_plain_words(advice), "said": f"Copied. {advice.schedule_missing or ''}".rstrip()}
            text = await api.schedule_text(visitor, run_id, word, view["pref"], limits)
        except ApiProblem as problem:
            return {"text": None, "said": f"Not written: {problem.detail}"}
        return {"text": text, "said": f"Copied for {TRAINERS[word]}."}

    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "copyFlags"),
        Output("run-flags-said", "children"),
        Output("run-flags-text", "children"),
        Output("run-flags-text", "hidden"),
        Input("run-flags", "data"),
        prevent_initial_call=True,
    )


def can_be_copied(advice: Recommendation) -> bool:
    """Whether there is a change to paste."""
    return advice.decision in MOVES and advice.recommended_batch_size is not None


def schedule(advice: Recommendation) -> list[Child]:
    """The stages from now on with their learning rates, or why there are none."""
    found = advice.schedule
    if found is None or not found.stages:
        if advice.recommended_batch_size is None or not advice.schedule_missing:
            return []
        return [_title(), html.P(unbroken(advice.schedule_missing), className="dim small")]
    head = html.Tr([html.Th(word, scope="col") for word in ("From step", "batch", "learning rate")])
    rows = [_stage_row(stage) for stage in found.stages]
    table = html.Table([html.Thead(head), html.Tbody(rows)], className="tb advice")
    saved = ""
    if found.saving and len(found.stages) > 1:
        saved = f" It saves {share(found.saving)} against the best constant batch, by the forecast."
    return [_title(), table, html.P(unbroken(f"{found.why or ''}{saved}"), className="dim small")]


def _title() -> html.H3:
    return html.H3("Schedule for the rest", className="t2 small section")


def _stage_row(stage: Stage) -> html.Tr:
    length = f"{significant(stage.num_steps)} steps" if stage.num_steps is not None else ""
    return html.Tr(
        [
            html.Th([count(stage.step), html.Span(length, className="between")], scope="row"),
            html.Td(html.B(count(stage.batch_size))),
            html.Td(rate(stage.learning_rate)),
        ]
    )


def rescaling(changes: tuple[Change, ...]) -> list[Child]:
    """Each hyperparameter before and after, its rule, and how far that can be trusted."""
    head = html.Tr([html.Th(word, scope="col") for word in ("Setting", "now", "then")])
    rows = [
        html.Tr([html.Th(one.field, scope="row"), html.Td(rate(one.before)), html.Td(html.B(rate(one.after)))])
        for one in changes
    ]
    told = [html.Li([html.B(one.field), unbroken(f": {_about(one)}")]) for one in changes]
    table = html.Table([html.Thead(head), html.Tbody(rows)], className="tb advice")
    return [table, html.Ul(told, className="notes said dim small")]


def _about(change: Change) -> str:
    reach = "" if change.is_in_range else " (this change is outside of that)"
    parts = [
        change.rule or NOTHING,
        f"Holds for {change.holds_for}{reach}" if change.holds_for else "",
        "" if change.is_verified else "Not verified for this optimizer",
        change.text or "",
        change.source or "",
    ]
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)
