"""What can be done with the chosen runs: tag, archive, delete; each can be undone."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import baseline
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import aria
from noisescale_dashboard.shell.parts import icon

DELETE_AFTER_SECONDS = 12
"""So long a deleted run only lies in the archive, and comes back when the reader wants it."""
AT_ONCE = 4
MAX_COMPARED = 20
"""The page that compares draws no more."""
Row = Mapping[str, Any]
Undo = list[dict[str, Any]]


def bar() -> html.Div:
    """The buttons for chosen runs, at the foot of the table; hidden while nothing is chosen."""
    tag = html.Details(
        [
            html.Summary([icon("tag", "sm"), "Tag"], className="btn"),
            html.Div(
                [
                    dmc.TextInput(
                        id="runs-new-tag",
                        placeholder="Tag",
                        size="xs",
                        **aria({"aria-label": "Tag to add or remove"}),
                    ),
                    html.Div(
                        [
                            html.Button("Add", id="runs-add-tag", type="button", className="btn"),
                            html.Button("Remove", id="runs-remove-tag", type="button", className="btn"),
                        ],
                        className="row",
                    ),
                ],
                className="dropdown grid",
            ),
        ],
        className="details upwards",
    )
    return html.Div(
        [
            html.B(id="runs-chosen"),
            html.A(
                [icon("compare", "sm"), "Compare"],
                id="runs-compare",
                href="/compare",
                className="btn",
                **aria({"data-go": "page"}),
            ),
            tag,
            _button("runs-pin", "pin", "Pin as baseline"),
            _button("runs-archive", "archive", "Archive"),
            _button("runs-restore", "archive", "Restore"),
            _button("runs-delete", "x", "Delete"),
        ],
        id="runs-bar",
        className="row wrap",
        hidden=True,
        role="toolbar",
        **aria({"aria-label": "Chosen runs"}),
    )


def _button(button_id: str, icon_name: str, words: str) -> html.Button:
    return html.Button([icon(icon_name, "sm"), words], id=button_id, type="button", className="btn")


def outcome() -> html.Div:
    """What was done last, with a button that undoes it."""
    return html.Div(
        [
            html.Span(id="runs-done-words", role="status"),
            html.Button("Undo", id="runs-undo", type="button", className="btn", hidden=True),
            dcc.Store(id="runs-done"),
            # when the browser says that the time for undoing is over; assets/modules/runs/chosen.js
            dcc.Store(id="runs-purge"),
            dcc.Store(id="runs-purge-timer", data=1000 * DELETE_AFTER_SECONDS),
        ],
        id="runs-outcome",
        className="row outcome",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: the bar, the changes and their undoing, the deletion that follows."""
    _register_bar(app)
    _register_changes(app, api)
    _register_pin(app, api)
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "purgeLater"),
        Output("runs-purge", "data"),
        Input("runs-done", "data"),
        State("runs-purge-timer", "data"),
    )

    @app.callback(
        Output("runs-done", "data", allow_duplicate=True),
        Input("runs-purge", "data"),
        State("runs-done", "data"),
        prevent_initial_call=True,
    )
    async def delete_for_good(moment: float | None, done: dict[str, Any] | None) -> dict[str, Any]:
        doomed = (done or {}).get("doomed") or []
        if not moment or not doomed or not is_own_site(ctx.headers):
            raise PreventUpdate
        return await delete_all(api, visitor_headers(ctx.headers), doomed)


def _register_bar(app: Dash) -> None:
    @app.callback(
        Output("runs-bar", "hidden"),
        Output("runs-chosen", "children"),
        Output("runs-archive", "hidden"),
        Output("runs-restore", "hidden"),
        Output("runs-compare", "href"),
        Output("runs-pin", "hidden"),
        Output("runs-pin", "children"),
        Input("runs-grid", "selectedRows"),
        State("runs-view", "data"),
    )
    def show_bar(rows: list[Row] | None, view: dict[str, Any] | None) -> tuple[Any, ...]:
        is_archive = view is not None and view["shelf"] == "archived"
        chosen = rows or []
        return (
            not rows,
            f"{len(chosen)} chosen",
            is_archive,
            not is_archive,
            compare_address(chosen),
            # a project has one
            len(chosen) != 1,
            baseline.words(is_baseline=len(chosen) == 1 and bool(chosen[0].get("baseline"))),
        )

    @app.callback(
        Output("runs-done-words", "children"),
        Output("runs-undo", "hidden"),
        Output("runs-grid", "selectedRows"),
        Input("runs-done", "data"),
    )
    def show_outcome(done: dict[str, Any] | None) -> tuple[str, bool, list[Row]]:
        if not done:
            raise PreventUpdate
        return done["words"], not done.get("undo"), []


def _register_pin(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("runs-done", "data", allow_duplicate=True),
        Input("runs-pin", "n_clicks"),
        State("runs-grid", "selectedRows"),
        prevent_initial_call=True,
    )
    async def pin_chosen(clicks: int | None, rows: list[Row] | None) -> dict[str, Any]:
        if not clicks or not rows or len(rows) != 1 or not is_own_site(ctx.headers):
            raise PreventUpdate
        row = rows[0]
        return {
            "words": await baseline.pinned(
                api,
                visitor_headers(ctx.headers),
                str(row.get("project", "")),
                str(row["id"]),
                is_baseline=bool(row.get("baseline")),
            )
        }


def _register_changes(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("runs-done", "data"),
        Output("runs-new-tag", "value"),
        Input("runs-archive", "n_clicks"),
        Input("runs-restore", "n_clicks"),
        Input("runs-delete", "n_clicks"),
        Input("runs-add-tag", "n_clicks"),
        Input("runs-remove-tag", "n_clicks"),
        Input("runs-undo", "n_clicks"),
        State("runs-grid", "selectedRows"),
        State("runs-new-tag", "value"),
        State("runs-done", "data"),
        prevent_initial_call=True,
    )
    async def change(*given: Any) -> tuple[Any, Any]:
        rows, tag, done = given[-3:]
        button = str(ctx.triggered_id)
        if not any(given[:-3]) or not is_own_site(ctx.headers):
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            if button == "runs-undo":
                return await undo(api, visitor, done or {}), no_update
            if not rows:
                raise PreventUpdate
            # what was deleted before can no longer be undone: its button now undoes this
            await delete_all(api, visitor, (done or {}).get("doomed") or [])
            if "tag" in button and not (tag or "").strip():
                return {"words": "Write the tag first."}, no_update
            said = await ACTIONS[button](api, visitor, rows, (tag or "").strip())
        except ApiProblem as problem:
            return {"words": f"Nothing was changed. {problem.title}: {problem.detail}"}, no_update
        return said, "" if "tag" in button else no_update


def compare_address(rows: Sequence[Row]) -> str:
    """Where the chosen runs are compared; ids alone, so nothing needs quoting."""
    return f"/compare?runs={','.join(str(row['id']) for row in rows[:MAX_COMPARED])}"


async def archive(api: ApiClient, visitor: Mapping[str, str], rows: Sequence[Row], _tag: str) -> dict[str, Any]:
    """Put the runs away."""
    ids = [row["id"] for row in rows]
    found = await api.change_runs(visitor, ids, archived=True)
    return {"words": f"{runs_words(len(found.changed))} archived.", "undo": [{"ids": ids, "archived": False}]}


async def restore(api: ApiClient, visitor: Mapping[str, str], rows: Sequence[Row], _tag: str) -> dict[str, Any]:
    """Fetch the runs back from the archive."""
    ids = [row["id"] for row in rows]
    found = await api.change_runs(visitor, ids, archived=False)
    return {"words": f"{runs_words(len(found.changed))} restored.", "undo": [{"ids": ids, "archived": True}]}


async def delete(api: ApiClient, visitor: Mapping[str, str], rows: Sequence[Row], _tag: str) -> dict[str, Any]:
    """Put the runs into the archive, from where they are deleted a little later."""
    ids = [row["id"] for row in rows]
    await api.change_runs(visitor, ids, archived=True)
    words = (
        f"{runs_words(len(ids))} deleted. You can undo this for {DELETE_AFTER_SECONDS} seconds; if you leave the page "
        "before that, they stay in the archive."
    )
    were_archived = [row["id"] for row in rows if row.get("archived")]
    back = [run_id for run_id in ids if run_id not in were_archived]
    return {"words": words, "undo": [{"ids": back, "archived": False}] if back else [{}], "doomed": ids}


async def add_tag(api: ApiClient, visitor: Mapping[str, str], rows: Sequence[Row], tag: str) -> dict[str, Any]:
    """Tag the runs that do not have the tag yet."""
    ids = [row["id"] for row in rows if tag not in row["tags"]]
    if not ids:
        return {"words": "All of them have this tag already."}
    found = await api.change_runs(visitor, ids, add_tags=[tag])
    full = f" {runs_words(len(found.too_many_tags))} cannot take more tags." if found.too_many_tags else ""
    words = f"{runs_words(len(found.changed))} tagged {tag}.{full}"
    return {"words": words, "undo": [{"ids": list(found.changed), "remove_tags": [tag]}] if found.changed else []}


async def remove_tag(api: ApiClient, visitor: Mapping[str, str], rows: Sequence[Row], tag: str) -> dict[str, Any]:
    """Take the tag from the runs that have it."""
    ids = [row["id"] for row in rows if tag in row["tags"]]
    if not ids:
        return {"words": "None of them has this tag."}
    found = await api.change_runs(visitor, ids, remove_tags=[tag])
    words = f"Tag {tag} removed from {runs_words(len(found.changed))}."
    return {"words": words, "undo": [{"ids": list(found.changed), "add_tags": [tag]}]}


async def undo(api: ApiClient, visitor: Mapping[str, str], done: Mapping[str, Any]) -> dict[str, Any]:
    """Take back what was done last."""
    for change in done.get("undo") or ():
        if change:
            await api.change_runs(visitor, change["ids"], **{k: v for k, v in change.items() if k != "ids"})
    return {"words": "Undone."}


async def delete_all(api: ApiClient, visitor: Mapping[str, str], ids: Sequence[str]) -> dict[str, Any]:
    """Delete the runs; those that cannot be deleted stay in the archive."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(run_id: str) -> bool:
        async with gate:
            try:
                await api.delete_run(visitor, run_id)
            except ApiProblem as problem:
                return problem.is_missing
            return True

    gone = sum(await asyncio.gather(*(one(run_id) for run_id in ids)))
    left = len(ids) - gone
    kept = f" {runs_words(left)} could not be deleted and stay in the archive." if left else ""
    return {"words": f"{runs_words(gone)} deleted.{kept}"}


def runs_words(number: int) -> str:
    """In short: "1 run", "3 runs"."""
    return f"{number:,} run{'' if number == 1 else 's'}"


ACTIONS: Mapping[str, Callable[..., Any]] = {
    "runs-archive": archive,
    "runs-restore": restore,
    "runs-delete": delete,
    "runs-add-tag": add_tag,
    "runs-remove-tag": remove_tag,
}
