"""The card of a run's layers: over training or ranked, and the choice of one."""

import asyncio
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import sentences
from noisescale_dashboard.answers import Group
from noisescale_dashboard.api_client import ApiClient, ApiProblem, visitor_headers
from noisescale_dashboard.figures import layers
from noisescale_dashboard.number_format import si
from noisescale_dashboard.pages.parts import aria, card, figure_box

POINTS = 60
MAX_LAYERS = 48
CHANGED = (
    Output("run-layer-figure", "data"),
    Output("run-layer-names", "data"),
    Output("run-layer", "data"),
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
        actions=[choice, kinds],
        footer=[],
        is_figure=True,
        class_name="layers-card",
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads and draws the layers."""

    @app.callback(
        *CHANGED,
        Input("run-range-view", "data"),
        Input("run-pulse", "data"),
        Input("run-layer-kind", "value"),
        State("run-id", "data"),
        State("narrow", "data"),
    )
    async def load_layers(
        view: dict[str, Any] | None, _pulse: float | None, kind: str, run_id: str, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        asked = {"from": view["from"], "to": view["to"], "points": POINTS}
        try:
            visitor = visitor_headers(ctx.headers)
            run, groups = await asyncio.gather(api.run(visitor, run_id), api.groups(visitor, run_id, asked))
        except ApiProblem as problem:
            return (*[no_update] * 3, f"not loaded: {problem.title}", no_update, no_update)
        shown = groups[:MAX_LAYERS]
        names = [group.name for group in shown]
        draw_layers = layers.layer_heat_map if kind == "map" else layers.layer_ranking
        return (
            draw_layers(shown, noun=sentences.noun_of(run), narrow=narrow) if shown else no_update,
            names,
            names,
            layers_subtitle(shown, kind, sentences.noun_of(run)),
            layers_footer(groups),
            layers_sentence(groups),
        )


def layers_subtitle(groups: tuple[Group, ...], kind: str, noun: str) -> str:
    """What colour or position means."""
    if not groups:
        return "no records per layer yet: they are sent every ten seconds of training"
    if kind == "rank":
        return f"{noun.capitalize()}, log · largest first · whisker: 95 % · ▷ lower bound"
    low, high = layers.color_range(groups)
    return f"network order · lighter to darker: {si(low)} to {si(high)} {noun} · hatched: not resolved"


def layers_footer(groups: tuple[Group, ...]) -> str | None:
    """How many layers there is no room for."""
    return f"The first {MAX_LAYERS} of {len(groups)} layers are drawn." if len(groups) > MAX_LAYERS else None


def layers_sentence(groups: tuple[Group, ...]) -> str:
    """The layer figure in words."""
    known = [group for group in groups if group.estimate.value is not None]
    if not known:
        return "No layer has a resolved noise scale."
    largest = max(known, key=lambda group: group.estimate.value or 0)
    smallest = min(known, key=lambda group: group.estimate.value or 0)
    return (
        f"Largest noise scale in {largest.name}, {si(largest.estimate.value)}; "
        f"smallest in {smallest.name}, {si(smallest.estimate.value)}."
    )
