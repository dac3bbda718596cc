"""Does the size of a model act beyond its loss: runs of one task by size, and the test at equal loss."""

import json
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.comparisons import ModelSizes, SizedTask
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.figures.comparison import noise_scale_by_model_size as by_size
from noisescale_dashboard.shell.explained import aria
from noisescale_dashboard.shell.parts import card, figure_box

GRAPHS = ("sizes",)
NOBODY = (
    "No task has runs of two model sizes. Say the size when a run begins, "
    'noisescale.init(config={"num_parameters": 124e6}), or name another key in the address: ?size=width.'
)
CHANGED = (
    Output("compare-size-figures", "data"),
    Output("compare-sizes-box", "hidden"),
    Output("compare-sizes-words", "children"),
    Output("compare-sizes-card-subtitle", "children"),
    Output("compare-sizes-card-footer", "children"),
    Output("compare-sizes-sentence", "children"),
    Output("compare-of", "data"),
    Output("compare-of", "placeholder"),
    Output("compare-of-box", "hidden"),
)


def size_card() -> html.Section:
    """The card before its first data; the choice of the task shows where there are several."""
    choice = dmc.Select(
        id="compare-of",
        data=[],
        clearable=True,
        size="xs",
        w=118,
        **aria({"aria-label": "Task whose model sizes are compared"}),
    )
    return card(
        "Does model size matter?",
        "",
        [
            html.Div(
                figure_box("compare-sizes", card_id="compare-sizes-card", height=by_size.HEIGHT), id="compare-sizes-box"
            ),
            html.Div(id="compare-sizes-words", className="words"),
        ],
        card_id="compare-sizes-card",
        actions=html.Div(choice, id="compare-of-box", hidden=True),
        footer=[],
        is_figure=True,
        class_name="sizes-card",
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the tasks with several sizes and the test of one of them."""

    @app.callback(*CHANGED, Input("compare-view", "data"), State("narrow", "data"))
    async def load_sizes(view: dict[str, Any] | None, narrow: bool) -> tuple[Any, ...]:
        if view is None or view["tab"] != "tasks":
            raise PreventUpdate
        visitor, size_key = visitor_headers(ctx.headers), view["size"]
        try:
            known = await api.sized_tasks(visitor, {"size_key": size_key})
            tasks = tuple(one for one in known if view["project"] in (None, one.project))
            chosen = chosen_task(tasks, view["project"], view["task"])
            if chosen is None:
                return _without_sizes()
            project, task = chosen
            found = await api.model_sizes(visitor, {"size_key": size_key, "project": project, "task": task})
        except ApiProblem as problem:
            words = f"Not loaded. {problem.title}: {problem.detail}"
            return None, True, words, no_update, [], "", no_update, no_update, True
        return (
            {"sizes": by_size.noise_scale_by_model_size(found, noun="examples", narrow=narrow)},
            not found.runs,
            None,
            f"{task[:32]}, examples, log",
            [html.B(compare_sentences.sizes_verdict(found)), *_marks(found)],
            compare_sentences.sizes_sentence(found),
            [{"value": _value(one.project, one.task), "label": f"{one.project} · {one.task}"} for one in tasks],
            f"{project} · {task}"[:60],
            len(tasks) < 2,
        )


def _marks(found: ModelSizes) -> list[html.Span]:
    if not found.runs:
        return []
    common = " · grey: losses of all sizes" if found.has_common_losses else ""
    return [html.Span(f"Stronger colour: larger{common}", className="dim")]


def _without_sizes() -> tuple[Any, ...]:
    return None, True, NOBODY, "", [], NOBODY, [], "", True


def chosen_task(tasks: Sequence[SizedTask], project: str | None, task: str | None) -> tuple[str, str] | None:
    """The task that the address names, whether or not it has sizes, else the one with most; None without any."""
    if project and task:
        return project, task
    return (tasks[0].project, tasks[0].task) if tasks else None


def _value(project: str, task: str) -> str:
    return json.dumps([project, task], ensure_ascii=False, separators=(",", ":"))
