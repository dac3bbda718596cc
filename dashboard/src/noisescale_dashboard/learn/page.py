"""Learn: what a noise scale is and what to do with it, in plain words, with a run of this server as the example."""

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.series import NoiseScaleSeries
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures import gradient_arrows
from noisescale_dashboard.figures.over_training import noise_scale_over_training
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.planning import trade_off_position
from noisescale_dashboard.learn import example as examples
from noisescale_dashboard.learn.example import Example
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, figure_box, link
from noisescale_dashboard.words.learn_sections import SECTIONS, Section
from noisescale_dashboard.words.number_format import count, unbroken
from noisescale_dashboard.words.term import Term, anchor
from noisescale_dashboard.words.terms import TERMS

MOST_LOOKED_AT = 20
"""Newest runs among which an example with a clear estimate is looked for."""
POINTS = 160
MOST_OCTAVES = 4
"""The slider goes from a sixteenth of the noise scale to 16 times it."""
HEIGHT = 300
SOURCES = (
    ("McCandlish et al. 2018, An Empirical Model of Large-Batch Training", "1812.06162"),
    ("Shallue et al. 2018, Measuring the Effects of Data Parallelism on Neural Network Training", "1811.03600"),
    ("Kaplan et al. 2020, Scaling Laws for Neural Language Models", "2001.08361"),
    ("Ivgi et al. 2023, DoG is SGD's Best Friend", "2302.12022"),
)
"""Authors, year and title; number at arXiv."""


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del narrow, refresh_seconds
    body = [
        html.H1("What batch size, and why?", className="h1"),
        html.P("The ideas behind every number here, in plain words. Each term is explained once.", className="lede"),
        _contents(),
        _try_it(),
        html.Div([_section(key, one) for key, one in SECTIONS.items()], className="grid learn mt16"),
        html.Div(_over_training(), className="mt16"),
        html.Section(
            [html.H2("Words", className="tt"), html.Dl([part for key in TERMS for part in _entry(TERMS[key], key)])],
            className="card learn-card mt16",
            id="words",
        ),
        html.Section(
            [html.H2("Sources", className="tt"), html.Ul([_source(*one) for one in SOURCES])],
            className="card learn-card mt16",
            id="sources",
        ),
        dcc.Store(id="learn-asked", data=1),
        dcc.Store(id="learn-run"),
        dcc.Store(id="learn-figures"),
        dcc.Store(id="learn-noise-figures"),
        dcc.Store(id="learn-at"),
    ]
    return shell.page([html.B("Learn")], body)


def _contents() -> html.Nav:
    links = [link(one.title, f"/learn#{key}") for key, one in SECTIONS.items()]
    documentation = html.A("Documentation", href="/docs/", title="Tutorials, how-to, reference, REST")
    others = [link("Words", "/learn#words"), link("Sources", "/learn#sources"), documentation]
    return html.Nav([*links, *others], className="learn-contents", **aria({"aria-label": "On this page"}))


def _try_it() -> html.Section:
    slider = dmc.Slider(
        id="learn-octaves",
        min=-MOST_OCTAVES,
        max=MOST_OCTAVES,
        step=0.5,
        value=-2,
        marks=[
            {"value": value, "label": words}
            for value, words in ((-4, "1/16"), (-2, "1/4"), (0, "1 ×"), (2, "4 ×"), (4, "16 ×"))
        ],
        label=None,
        size="sm",
        thumbLabel="Batch, as a multiple of the noise scale",
        className="learn-slider",
    )
    return card(
        "Small and large batches",
        "Gradients of single batches, made up · examples ÷ E_min over steps ÷ S_min, log",
        [
            html.Div([html.Div(["Batch ", html.B(id="learn-batch")], className="t2"), slider]),
            html.Div(
                [
                    figure_box("learn-arrows", card_id="learn-try-card", height=gradient_arrows.HEIGHT),
                    figure_box("learn-curve", card_id="learn-try-card", height=trade_off_position.HEIGHT),
                ],
                className="grid cols two",
            ),
        ],
        card_id="learn-try-card",
        footer=html.P(id="learn-told", className="t2"),
        class_name="learn-try",
        is_figure=True,
    )


def _over_training() -> html.Section:
    return card(
        "A noise scale over training",
        "log · band: 95 % interval",
        figure_box("learn-noise", card_id="learn-noise-card", height=HEIGHT),
        card_id="learn-noise-card",
        footer=html.P(id="learn-example", className="t2"),
        is_figure=True,
    )


def _section(key: str, one: Section) -> html.Section:
    said = [html.P(unbroken(paragraph), className="t2") for paragraph in one.paragraphs]
    return html.Section([html.H2(one.title, className="tt"), *said], className="card learn-card", id=key)


def _entry(term: Term, key: str) -> list[Child]:
    source = f"Source: {term.source}." if term.source else ""
    more = (
        [html.Span(f" {' '.join(filter(None, (term.more, source)))}", className="dim")] if term.more or source else []
    )
    return [html.Dt(term.word, id=anchor(key)), html.Dd([unbroken(term.sentence), *more])]


def _source(title: str, number: str) -> html.Li:
    return html.Li(html.A(title, href=f"https://arxiv.org/abs/{number}", rel="noreferrer"))


def register(app: Dash, api: ApiClient) -> None:
    """The way to an anchor, the example, and what the slider moves."""
    app.clientside_callback(
        # the page is drawn after the browser has looked for the anchor in the address
        ClientsideFunction(shell.NAMESPACE, "goToAnchor"),
        Output("learn-at", "data"),
        Input("address", "hash"),
        Input("learn-asked", "data"),
    )
    for store, figures in (
        ("learn-figures", ("learn-arrows", "learn-curve")),
        ("learn-noise-figures", ("learn-noise",)),
    ):
        app.clientside_callback(
            ClientsideFunction(shell.NAMESPACE, "paintAll"),
            [Output(one, "figure") for one in figures],
            Input(store, "data"),
            Input("theme", "data"),
            State("palettes", "data"),
        )

    @app.callback(
        Output("learn-run", "data"),
        Output("learn-noise-figures", "data"),
        Output("learn-example", "children"),
        Output("learn-noise-sentence", "children"),
        Input("learn-asked", "data"),
        State("narrow", "data"),
    )
    async def load_example(asked: int | None, narrow: bool) -> tuple[dict[str, Any], dict[str, Any], list[Child], str]:
        if asked is None:
            raise PreventUpdate
        example, series = await _read(api)
        view = SeriesView(unit=series.unit, noun=example.noun, narrow=narrow, has_envelope=False, height=HEIGHT)
        figure = noise_scale_over_training.noise_scale_over_training(series, view)
        words = said(example)
        return examples.stored(example), {"noise": figure}, words, "".join(str(one) for one in words[1:])

    @app.callback(
        Output("learn-figures", "data"),
        Output("learn-told", "children"),
        Output("learn-batch", "children"),
        Output("learn-arrows-sentence", "children"),
        Output("learn-curve-sentence", "children"),
        Input("learn-octaves", "value"),
        Input("learn-run", "data"),
    )
    def move(octaves: float | None, kept: dict[str, Any] | None) -> tuple[dict[str, Any], str, str, str, str]:
        if kept is None or octaves is None:
            raise PreventUpdate
        example, ratio = examples.read(kept), 2.0**octaves
        batch = max(1.0, float(round((example.noise_scale.value or 0.0) * ratio)))
        told = unbroken(examples.at(batch, example))
        figures = {
            "arrows": gradient_arrows.gradient_arrows(ratio),
            "curve": trade_off_position.on_the_curve(example.noise_scale, batch, None),
        }
        spread = "Gradients of 60 batches scatter around the true one by "
        return figures, told, count(batch), f"{spread}{ratio**-0.5:.2g} times its length.", told


async def _read(api: ApiClient) -> tuple[Example, NoiseScaleSeries]:
    """The example and its series; the made-up ones where the server has none or does not answer."""
    visitor = visitor_headers(ctx.headers)
    try:
        page = await api.runs(visitor, {"limit": MOST_LOOKED_AT, "sort": "-updated_at"})
        example = examples.newest_clear(page.runs)
        if example.run_id is not None:
            return example, await api.noise_scale(visitor, example.run_id, {"points": POINTS})
    except ApiProblem:
        # what is explained needs no run
        return examples.MADE_UP, examples.made_up_series()
    return examples.MADE_UP, examples.made_up_series()


def said(example: Example) -> list[Child]:
    """What the numbers of an example say, beginning with its name."""
    name: Child = link(example.name[:80], f"/runs/{example.run_id}") if example.run_id else "A made-up run"
    return [name, unbroken(examples.told(example))]
