"""The card of a run's layers: over training or ranked, and the choice of one."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.series import Group
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.over_training import layers
from noisescale_dashboard.figures.over_training.layers import NOISE_SCALE, QUANTITIES, LayerQuantity, of_term
from noisescale_dashboard.figures.parts import axes
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import aria
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.words.number_format import si

POINTS = 24
MAX_LAYERS = 48
TINY = 1e-3
"""Below it SI prefixes are harder to read than powers of ten."""
CHANGED = (
    Output("run-layer-figure", "data"),
    Output("run-layer-names", "data"),
    Output("run-layer", "data"),
    Output("run-layers-card-title", "children"),
    Output("run-layers-card-subtitle", "children"),
    Output("run-layers-card-footer", "children"),
    Output("run-layers-sentence", "children"),
)


def layers_card() -> html.Section:
    """The card before its first data."""
    kinds = dmc.SegmentedControl(
        id="run-layer-kind",
        data=[{"value": "map", "label": "Over training"}, {"value": "rank", "label": "Ranking"}],
        value="map",
        size="xs",
        **aria({"aria-label": "Show layers"}),
    )
    terms = dmc.SegmentedControl(
        id="run-layer-term",
        data=[{"value": "noise", "label": "Noise scale"}, {"value": "trace_cov", "label": "tr Σ"},
              {"value": "grad_sq_norm", "label": "|G|²"}],
        value="noise",
        size="xs",
        **aria({"aria-label": "What is shown of the layers"}),
    )  # fmt: skip
    choice = dmc.Select(
        id="run-layer",
        data=[],
        placeholder="All layers",
        clearable=True,
        searchable=True,
        size="xs",
        w=170,
        **aria({"aria-label": "Layer shown in the figure above"}),
    )
    return card(
        "Noise scale by layer",
        "",
        figure_box("run-layers", card_id="run-layers-card", height=120),
        card_id="run-layers-card",
        actions=[choice, terms, kinds],
        footer=[],
        is_figure=True,
        class_name="layers-card",
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads and draws the layers."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "layersAsked"),
        Output("run-layers-asked", "data"),
        Input("run-layers-view", "data"),
        Input("run-live", "data"),
        State("run-series-view", "data"),
        State("run-layers-asked", "data"),
    )

    @app.callback(
        *CHANGED,
        Input("run-layers-asked", "data"),
        # a record of layers comes at most every ten seconds and moves one cell of thirty: once a minute is enough
        Input("run-slow-pulse", "data"),
        State("run-id", "data"),
        State("run-live", "data"),
        State("narrow", "data"),
    )
    async def load_layers(
        view: dict[str, Any] | None, _pulse: float | None, run_id: str, live: dict[str, Any] | None, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        asked = {"from": view["from"], "to": view["to"], "points": POINTS}
        try:
            groups = await api.groups(visitor_headers(ctx.headers), run_id, asked)
        except ApiProblem as problem:
            return (*[no_update] * 4, f"not loaded: {problem.title}", no_update, no_update)
        quantity = QUANTITIES[view["term"]]
        shown = of_term(groups[:MAX_LAYERS], view["term"])
        names, noun = [group.name for group in shown], (live or {}).get("noun", "examples")
        draw_layers = layers.layer_heat_map if view["layers"] == "map" else layers.layer_ranking
        title = "Noise scale by layer" if quantity == NOISE_SCALE else f"{quantity.name} by layer"
        return (
            draw_layers(shown, noun=noun, narrow=narrow, quantity=quantity) if shown else layers.no_layers(),
            names,
            names,
            title,
            layers_subtitle(shown, view["layers"], quantity.unit or noun),
            layers_footer(groups),
            layers_sentence(shown, quantity),
        )


def layers_subtitle(groups: Sequence[Group], kind: str, noun: str) -> str:
    """What colour or position means."""
    if not groups:
        return "no records per layer yet: they are sent every ten seconds of training"
    if kind == "rank":
        return f"{noun.capitalize()}, log · largest first · whisker: 95 % · ▷ lower bound"
    low, high = layers.color_range(groups)
    ends = " to ".join(axes.power_of_ten(end) if end < TINY else si(end) for end in (low, high))
    return f"network order · faint to strong: {ends} {noun} · hatched: not resolved"


def layers_footer(groups: tuple[Group, ...]) -> str | None:
    """How many layers there is no room for."""
    return f"The first {MAX_LAYERS} of {len(groups)} layers are drawn." if len(groups) > MAX_LAYERS else None


def layers_sentence(groups: Sequence[Group], quantity: LayerQuantity = NOISE_SCALE) -> str:
    """The layer figure in words."""
    known = [group for group in groups if group.estimate.value is not None]
    if not known:
        return f"No layer has a resolved {quantity.name}."
    largest = max(known, key=lambda group: group.estimate.value or 0)
    smallest = min(known, key=lambda group: group.estimate.value or 0)
    return (
        f"Largest {quantity.name} in {largest.name}, {si(largest.estimate.value)}; "
        f"smallest in {smallest.name}, {si(smallest.estimate.value)}."
    )
