"""Callbacks of a run's page that run in the browser: address and controls, the clock, colours."""

from dash import ClientsideFunction, Dash, Input, Output, State

from noisescale_dashboard.run import head as run_overview
from noisescale_dashboard.shell import shell

OVER_TRAINING = ("noise", "terms", "loss")
VIEWS = ("view", "series-view", "pref-view", "layers-view")
"""What a reader looks at, and the parts of it that callbacks of their own read."""

CONTROLS = (
    ("run-x", "value"),
    ("run-kind", "value"),
    ("run-w", "value"),
    ("run-pref", "value"),
    ("run-layer", "value"),
    ("run-terms-show", "value"),
    ("run-layer-kind", "value"),
    ("run-layer-term", "value"),
    ("run-part", "value"),
    ("run-linked", "checked"),
    ("run-envelope", "checked"),
    ("run-outside", "checked"),
)
"""What a reader sets on the page, in the order of CONTROLS in assets/modules/run/view.js."""


def register(app: Dash) -> None:
    """All of them; the functions are in assets/modules/."""
    _register_view(app)
    _register_moment(app)
    _register_parts(app)
    _register_clock(app)
    _register_colours(app)


def _own(function: str) -> ClientsideFunction:
    return ClientsideFunction(shell.NAMESPACE, function)


def _register_view(app: Dash) -> None:
    app.clientside_callback(
        _own("runView"),
        *(Output(f"run-{name}", "data") for name in VIEWS),
        *(Output(*control) for control in CONTROLS),
        Input("address", "search"),
        *(Input(*control) for control in CONTROLS),
        *(State(f"run-{name}", "data") for name in ("view", "windows")),
    )
    app.clientside_callback(
        _own("runZoomed"),
        *(Output(f"run-{name}", "data", allow_duplicate=True) for name in VIEWS),
        *(Input(f"run-{name}", "relayoutData") for name in OVER_TRAINING),
        *(State(f"run-{name}", "data") for name in ("view", "figures")),
        prevent_initial_call=True,
    )
    # the strip is drawn anew with each news of the series; this fires again for the line in it
    app.clientside_callback(
        _own("wasteLine"),
        *(Output(run_overview.WASTE, name) for name in ("children", "title")),
        Input("run-waste", "data"),
    )
    app.clientside_callback(
        _own("layerClicked"),
        Output("run-layer", "value", allow_duplicate=True),
        Input("run-layers", "clickData"),
        State("run-layer-names", "data"),
        prevent_initial_call=True,
    )


def _register_moment(app: Dash) -> None:
    app.clientside_callback(
        _own("momentPinned"),
        Output("run-moment", "data"),
        *(Input(f"run-{name}", "clickData") for name in OVER_TRAINING),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        _own("momentSeries"),
        Output("run-hovered", "data"),
        Input("run-figures", "data"),
        State("run-series-view", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(_own("momentWords"), Output("run-moment-words", "children"), Input("run-moment", "data"))


def _register_parts(app: Dash) -> None:
    """Which part of the page a phone shows, and what it says to a screen reader."""
    app.clientside_callback(_own("partShown"), Output("run-parts", "className"), Input("run-part", "value"))
    app.clientside_callback(
        _own("announce"),
        Output("run-announcement", "children"),
        Output("run-announced", "data"),
        Input("run-noise-sentence", "children"),
        State("run-announced", "data"),
    )


def _register_clock(app: Dash) -> None:
    app.clientside_callback(
        _own("pulse"), Output("run-pulse", "data"), Input("run-clock", "n_intervals"), State("run-received", "data")
    )
    app.clientside_callback(
        _own("received"),
        Output("run-received", "data"),
        Input("run-live", "data"),
        State("run-clock", "n_intervals"),
        State("run-received", "data"),
    )
    app.clientside_callback(
        _own("liveWords"),
        Output("run-live-words", "children"),
        Input("run-second", "n_intervals"),
        Input("run-received", "data"),
    )


def _register_colours(app: Dash) -> None:
    theme = (Input("theme", "data"), State("palettes", "data"))
    for figures, graphs in (
        ("figures", ("noise",)),
        ("beside-figures", ("terms", "loss")),
        ("law-figures", ("against",)),
    ):
        app.clientside_callback(
            _own("paintAll"),
            [Output(f"run-{graph}", "figure") for graph in graphs],
            Input(f"run-{figures}", "data"),
            *theme,
        )
    for name, graph in (
        ("layer", "run-layers"),
        ("bullet", "run-bullet"),
        ("tradeoff", "run-tradeoff"),
        ("rate", "run-rate"),
    ):
        app.clientside_callback(_own("paintOne"), Output(graph, "figure"), Input(f"run-{name}-figure", "data"), *theme)
