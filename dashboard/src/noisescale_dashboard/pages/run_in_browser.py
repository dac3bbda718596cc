"""Callbacks of a run's page that run in the browser: address and controls, the clock, colours."""

from dash import ClientsideFunction, Dash, Input, Output, State

from noisescale_dashboard.pages import shell


def register(app: Dash) -> None:
    """All of them; the functions are in assets/50-*.js."""
    _register_view(app)
    _register_clock(app)
    _register_colours(app)


def _own(function: str) -> ClientsideFunction:
    return ClientsideFunction(shell.NAMESPACE, function)


def _register_view(app: Dash) -> None:
    app.clientside_callback(
        _own("runView"),
        Output("run-view", "data"),
        Output("run-series-view", "data"),
        Output("run-pref-view", "data"),
        Output("run-range-view", "data"),
        Output("run-x", "value"),
        Output("run-kind", "value"),
        Output("run-w", "value"),
        Output("run-pref", "value"),
        Output("run-layer", "value"),
        Input("address", "search"),
        Input("run-x", "value"),
        Input("run-kind", "value"),
        Input("run-w", "value"),
        Input("run-pref", "value"),
        Input("run-layer", "value"),
        Input("run-noise", "relayoutData"),
        Input("run-terms", "relayoutData"),
        Input("run-loss", "relayoutData"),
        State("run-view", "data"),
        State("run-figures", "data"),
        State("run-windows", "data"),
    )
    app.clientside_callback(
        _own("layerClicked"),
        Output("run-layer", "value", allow_duplicate=True),
        Input("run-layers", "clickData"),
        State("run-layer-names", "data"),
        prevent_initial_call=True,
    )


def _register_clock(app: Dash) -> None:
    app.clientside_callback(
        _own("pulse"), Output("run-pulse", "data"), Input("run-clock", "n_intervals"), State("run-received", "data")
    )
    app.clientside_callback(_own("received"), Output("run-received", "data"), Input("run-live", "data"))
    app.clientside_callback(
        _own("liveWords"),
        Output("run-live-words", "children"),
        Input("run-second", "n_intervals"),
        Input("run-received", "data"),
    )


def _register_colours(app: Dash) -> None:
    theme = (Input("theme", "data"), State("palettes", "data"))
    app.clientside_callback(
        _own("paintAll"),
        *(Output(f"run-{name}", "figure") for name in ("noise", "terms", "loss")),
        Input("run-figures", "data"),
        *theme,
    )
    app.clientside_callback(
        _own("paintAll"), [Output("run-against", "figure")], Input("run-law-figures", "data"), *theme
    )
    for name, graph in (("layer", "run-layers"), ("bullet", "run-bullet"), ("tradeoff", "run-tradeoff")):
        app.clientside_callback(_own("paintOne"), Output(graph, "figure"), Input(f"run-{name}-figure", "data"), *theme)
