"""A language model's first batch: what published sweeps advise before anything is measured."""

from contextlib import suppress
from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link
from noisescale_dashboard.words.number_format import count, si, span, unbroken

TITLE = "A language model's first batch"
LEDE = (
    "Before anything is measured, for pre-training from scratch on text with Adam or AdamW: from published sweeps "
    "alone. Once a run measures, its page answers for itself."
)
BILLION = 1e9
WORTH = (("0.2", "Save tokens"), ("0.5", "Balanced"), ("0.8", "Save steps"))
FIELDS: Final[tuple[tuple[str, str, float | str], ...]] = (
    ("tokens", "Tokens to train on, billions", 20),
    ("params", "Or parameters, billions: 20 tokens each", ""),
    ("sequence", "Tokens of a sequence", 2_048),
)
INPUTS = (
    *(Input(f"first-{name}", "value") for name, _, _ in FIELDS),
    Input("first-optimizer", "value"),
    Input("first-mixture", "checked"),
    Input("first-worth", "value"),
)


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first answer."""
    del narrow, refresh_seconds
    form = html.Section(
        [
            html.Div(html.H2("What is planned", className="tt"), className="hd"),
            html.Div([*(_number(*one) for one in FIELDS), *_choices()], className="bd"),
        ],
        className="card",
    )
    answer = html.Section(html.Div(id="first-answer"), className="card learn-card", **aria({"aria-live": "polite"}))
    body = [html.H1(TITLE, className="h1"), html.P(LEDE, className="lede mb12")]
    columns = html.Div([form, answer], className="grid cols two")
    crumbs = [link("Planner", "/planner"), icon("chevr", "xs"), html.Span(TITLE, className="crumb-end")]
    return shell.page(crumbs, [*body, columns])


def _number(name: str, label: str, value: float | str) -> Child:
    return dmc.NumberInput(
        id=f"first-{name}",
        label=label,
        value=value,
        min=0,
        hideControls=True,
        size="xs",
        debounce=400,
        className="mb12",
    )


def _choices() -> list[Child]:
    optimizers = [{"value": name, "label": words} for name, words in (("adamw", "AdamW"), ("adam", "Adam"))]
    worth = [{"value": value, "label": words} for value, words in WORTH]
    return [
        dmc.Select(
            id="first-optimizer",
            label="Optimizer",
            data=optimizers,
            value="adamw",
            allowDeselect=False,
            size="xs",
            className="mb12",
        ),
        dmc.Switch(id="first-mixture", label="Mixture of experts", checked=False, size="xs", className="mb12"),
        html.P("What matters", className="small"),
        dmc.SegmentedControl(id="first-worth", data=worth, value="0.5", size="xs", fullWidth=True),
    ]


def register(app: Dash, api: ApiClient) -> None:
    """The callback that asks for the batch whenever the plan changes."""

    @app.callback(Output("first-answer", "children"), *INPUTS)
    async def answer_first_batch(
        tokens: float | str | None,
        params: float | str | None,
        sequence: float | str | None,
        optimizer: str | None,
        is_mixture: bool | None,
        worth: str | None,
    ) -> list[Child]:
        num_tokens, num_params, num_in_sequence = (_positive(one) for one in (tokens, params, sequence))
        if num_tokens is None and num_params is None:
            return [html.P("Type how many tokens the model will see, or how many parameters it has.", className="t2")]
        if worth is None or optimizer is None:
            raise PreventUpdate
        asked: dict[str, Any] = {
            "tokens": num_tokens and num_tokens * BILLION,
            "params": None if num_tokens else num_params and num_params * BILLION,
            "sequence_length": round(num_in_sequence or 1),
            "optimizer": optimizer,
            "mixture_of_experts": bool(is_mixture),
            "preference": float(worth),
        }
        try:
            found = await api.first_batch(visitor_headers(ctx.headers), asked)
        except ApiProblem as problem:
            return [states.not_loaded(problem)]
        return said(found, round(num_in_sequence or 1))


def _positive(value: float | str | None) -> float | None:
    """A number above 0 that was typed; None for anything else."""
    with suppress(ValueError, TypeError):
        if (found := float(value or 0)) > 0:
            return found
    return None


def said(found: Recommendation, tokens_of_sequence: int) -> list[Child]:
    """The answer, with all that it rests on.

    Args:
        found: By the API, in sequences.
        tokens_of_sequence: In each.
    """
    batch = found.recommended_batch_size
    if batch is None or found.interval.low is None or found.interval.high is None:
        return [html.P(found.reason or found.headline, className="t2")]

    def tokens(sequences: float) -> str:
        return unbroken(f"{si(sequences * tokens_of_sequence)} tokens")

    low, high = found.interval.low, found.interval.high
    rows = [
        ("Could be", f"{span(low, high)} sequences, {tokens(low)} – {tokens(high)} (95 %)"),
        *(
            (one.text.capitalize(), f"{count(one.batch_size)} sequences, {tokens(one.batch_size)}")
            for one in found.otherwise
        ),
        ("Risk", found.effect),
        ("Rests on", found.reason),
        *(("Learning rate", one.text) for one in found.warnings),
        ("A batch that grows", found.schedule_missing),
        ("What would change it", found.next_step),
    ]
    parts: list[Child] = [
        html.H2(f"{found.headline} sequences", className="rec-head", id="first-headline"),
        html.P(f"{tokens(batch)} a step", className="lede mb12"),
        html.Dl([part for word, words in rows if words for part in (html.Dt(word), html.Dd(_sentence(words)))]),
    ]
    how = html.A("How this is computed", href="/docs/language_models/", className="term")
    return [*parts, html.P(how, className="small")]


def _sentence(words: str) -> str:
    return unbroken(words[:1].upper() + words[1:])
