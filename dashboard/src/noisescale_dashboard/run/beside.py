"""The figures beside a run's main one: they may come a moment later."""

from collections.abc import Mapping
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.over_training import loss_over_training
from noisescale_dashboard.run import figures as run_figures
from noisescale_dashboard.run import reading as run_reading
from noisescale_dashboard.run.figures import ReadBeside
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import explained
from noisescale_dashboard.words import sentences

CHANGED = (
    Output("run-beside-figures", "data"),
    Output("run-terms-card-title", "children"),
    Output("run-terms-card-subtitle", "children"),
    Output("run-terms-card-footer", "children"),
    Output("run-terms-sentence", "children"),
    Output("run-loss-card-subtitle", "children"),
    Output("run-loss-sentence", "children"),
)


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads them when the main figure is there, and less often than that with news."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "besideAsked"),
        Output("run-beside-asked", "data"),
        Output("run-news", "data"),
        Input("run-live", "data"),
        State("run-series-view", "data"),
        State("run-beside-asked", "data"),
        State("run-loss-card-subtitle", "children"),
    )

    @app.callback(
        *CHANGED,
        Input("run-beside-asked", "data"),
        State("run-id", "data"),
        State("narrow", "data"),
    )
    async def load_beside(asked: dict[str, Any] | None, run_id: str, narrow: bool) -> tuple[Any, ...]:
        if asked is None:
            raise PreventUpdate
        visitor, view = visitor_headers(ctx.headers), asked["view"]
        try:
            run = await api.run(visitor, run_id)
            read = await run_reading.read_beside(api, visitor, run, view)
        except ApiProblem as problem:
            not_loaded = f"not loaded: {problem.title}"
            return _only({"run-terms-card-subtitle": not_loaded, "run-loss-card-subtitle": not_loaded})
        return _only(_drawn(run, read, view, narrow=narrow))


def _drawn(run: Run, read: ReadBeside, view: Mapping[str, Any], *, narrow: bool) -> dict[str, Any]:
    look = run_figures.look_at(run_reading.view_beside(view), run, narrow=narrow)
    terms = run_figures.terms_of(read, look, view["show"])
    return {
        "run-beside-figures": {
            "terms": terms.figure,
            "loss": loss_over_training.loss_over_training(read.whole, look, read.metrics),
        },
        "run-terms-card-title": terms.title,
        "run-terms-card-subtitle": explained(terms.subtitle),
        "run-terms-card-footer": terms.footer,
        "run-terms-sentence": terms.sentence,
        "run-loss-card-subtitle": run_figures.loss_subtitle(read.whole, read.metrics),
        "run-loss-sentence": sentences.loss_sentence(read.whole, read.metrics),
    }


def _only(changes: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(str(output.component_id), no_update) for output in CHANGED)
