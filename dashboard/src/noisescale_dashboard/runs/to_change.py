"""Which runs are to change their batch: what to do with each, the biggest saving first, and that as one pastes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Decision, Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.question_fields import BALANCED
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.runs import view as runs_view
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import (
    DECISION_ICONS,
    DECISION_STYLES,
    LINK_ACTION,
    card_menu,
    icon,
    link,
    status_dot,
)
from noisescale_dashboard.words.decisions import MOVES, RAISED
from noisescale_dashboard.words.names import short_names
from noisescale_dashboard.words.number_format import chance, count, share
from noisescale_dashboard.words.trainers import CHOICES, PLAIN, TRAINERS, in_plain_words

MAX_LISTED, FIRST = 20, 3
SURE, LIKELY = 0.95, 0.8
NAME_CHARACTERS, NARROW_CHARACTERS = 44, 30
SORT = "-saving"


def layout() -> html.Section:
    """The list before its first data: hidden until a run is to change."""
    trainer = dmc.Select(
        id="runs-trainer",
        data=[{"value": word, "label": f"For {TRAINERS.get(word, 'any trainer')}"} for word in CHOICES],
        value=PLAIN,
        allowDeselect=False,
        persistence=True,
        persistence_type="local",
        size="xs",
        w=172,
        **aria({"aria-label": "Trainer to copy for"}),
    )
    head = html.Div(
        [
            html.Div(
                [
                    html.H2(id="runs-change-title", className="tt"),
                    html.Div("Biggest expected saving first", className="st", id="runs-change-subtitle"),
                ]
            ),
            html.Div(trainer, className="ac"),
            card_menu((LINK_ACTION,), "runs-change"),
        ],
        className="hd",
    )
    copied = html.Div(
        [
            html.P(id="runs-flags-said", className="dim small", role="status"),
            html.Pre(id="runs-flags-text", className="code", hidden=True, tabIndex="0"),
            dcc.Store(id="runs-copy-asked"),
            dcc.Store(id="runs-flags"),
        ],
        className="copied",
    )
    return html.Section(
        [head, html.Div([html.Div(id="runs-change-list"), copied], className="bd")],
        className="card mb12 to-change",
        id="runs-change",
        hidden=True,
        **aria({"aria-labelledby": "runs-change-title"}),
    )


def register(app: Dash, api: ApiClient) -> None:
    """The list, and the text that is copied for one of its runs."""

    @app.callback(
        Output("runs-change", "hidden"),
        Output("runs-change-title", "children"),
        Output("runs-change-list", "children"),
        Input("runs-view", "data"),
        Input("runs-done", "data"),
        State("narrow", "data"),
    )
    async def load_changes(view: dict[str, Any] | None, _done: Any, narrow: bool) -> tuple[bool, str, Child | None]:
        if view is None:
            raise PreventUpdate
        try:
            page = await api.runs(visitor_headers(ctx.headers), query(view))
        except ApiProblem:
            # the list below says what is wrong
            return True, "", None
        return (
            not page.runs,
            title(page.total, is_exact=page.is_total_exact),
            listed(page.runs, page.total, narrow=narrow),
        )

    @app.callback(
        Output("runs-flags", "data"),
        Input("runs-copy-asked", "data"),
        State("runs-trainer", "value"),
        prevent_initial_call=True,
    )
    async def write_flags(asked: dict[str, Any] | None, trainer: str | None) -> dict[str, Any]:
        if not asked:
            raise PreventUpdate
        return await flags(api, visitor_headers(ctx.headers), asked["id"], trainer or PLAIN)

    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "copyFlags"),
        Output("runs-flags-said", "children"),
        Output("runs-flags-text", "children"),
        Output("runs-flags-text", "hidden"),
        Input("runs-flags", "data"),
        prevent_initial_call=True,
    )


def query(view: Mapping[str, Any]) -> dict[str, Any]:
    """The API's query for the runs of a view that are to change."""
    asked = runs_view.query({**view, "trials": "hide", "sort": SORT}, None, limit=MAX_LISTED)
    return {**asked, "decision": [asked["decision"]] if asked["decision"] in MOVES else list(MOVES)}


async def flags(api: ApiClient, visitor: Mapping[str, str], run_id: str, trainer: str) -> dict[str, Any]:
    """What to paste for a run, and the words that say what was copied."""
    try:
        advice = await api.recommendation(visitor, run_id, BALANCED)
        if trainer not in TRAINERS or advice.schedule is None:
            text = in_plain_words(advice) if advice.recommended_batch_size is not None else None
            said = (
                f"Copied. {advice.schedule_missing or ''}".rstrip() if text else "There is no batch to copy any more."
            )
            return {"text": text, "said": said}
        text = await api.schedule_text(visitor, run_id, trainer, BALANCED)
    except ApiProblem as problem:
        return {"text": None, "said": f"Not written: {problem.detail}"}
    return {"text": text, "said": f"Copied for {TRAINERS[trainer]}."}


def title(total: int, *, is_exact: bool = True) -> str:
    """In short: "7 runs to change"."""
    return f"{'' if is_exact else 'over '}{count(total)} run{'' if total == 1 else 's'} to change"


def listed(runs: Sequence[Run], total: int, *, narrow: bool) -> Child:
    """The first few, and the others behind a fold."""
    short = short_names([run.name for run in runs], at_most=NARROW_CHARACTERS if narrow else NAME_CHARACTERS)
    items = [_item(run, name) for run, name in zip(runs, short, strict=True)]
    first = html.Ul(items[:FIRST], className="changes")
    if len(items) <= FIRST:
        return first
    words = f"{len(items) - FIRST} more" if total == len(items) else f"{len(items) - FIRST} more of {count(total)}"
    return html.Div([first, html.Details([html.Summary(words), html.Ul(items[FIRST:], className="changes")])])


def _item(run: Run, short: str) -> html.Li:
    style = DECISION_STYLES.get(run.decision.decision, "ins")
    pill = html.Span(
        [icon(DECISION_ICONS[style], "xs"), what_to_do(run)],
        className=f"pill {style}",
        title=run.decision.reason or None,
    )
    copy = html.Button(
        [icon("copy", "sm"), "Copy"],
        type="button",
        className="btn small",
        **aria({"data-copy-run": run.id, "aria-label": f"Copy for my trainer: {run.name[:80]}"}),
    )
    return html.Li(
        [
            status_dot(run),
            link(short, f"/runs/{run.id}", class_name="nm", title=run.name),
            pill,
            html.Span(gain(run.decision), className="t2 num"),
            copy,
        ]
    )


def what_to_do(run: Run) -> str:
    """In short: "raise 512 → 1,536"."""
    verb = "raise" if run.decision.decision in RAISED else "lower"
    if run.decision.batch_size is None:
        return verb
    return f"{verb} {count(run.global_batch)} → {count(run.decision.batch_size)}"


def gain(decision: Decision) -> str:
    """What it is expected to save, and how sure that is: "saves 24 %, likely (91 %)"."""
    saves = f"saves {share(decision.saving)}" if decision.saving else ""
    odds = decision.probability
    if odds is None:
        return saves
    word = "sure" if odds >= SURE else "likely" if odds >= LIKELY else "probably"
    return ", ".join(part for part in (saves, f"{word} ({chance(odds)})") if part)
