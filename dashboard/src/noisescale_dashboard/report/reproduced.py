"""What `noisescale reproduce` has found as one HTML file: the cross-task figure and the tables, nothing is loaded."""

from dash import html

from noisescale_dashboard.answers.common import Json
from noisescale_dashboard.answers.comparisons import Comparison
from noisescale_dashboard.answers.reproductions import comparison
from noisescale_dashboard.compare import tasks as compare_tasks
from noisescale_dashboard.figures.comparison.noise_scale_against_critical_batch import (
    noise_scale_against_critical_batch,
)
from noisescale_dashboard.figures.parts.theme import LIGHT
from noisescale_dashboard.figures.svg import as_svg
from noisescale_dashboard.figures.svg.markup import literal
from noisescale_dashboard.report.document import page
from noisescale_dashboard.report.markup import Markup
from noisescale_dashboard.reproduce.words import figure_caption, figures_words
from noisescale_dashboard.shell.explained import Child

WIDE, NARROW = 776, 342
STYLE = "pre{font:9.5px/13px ui-monospace,monospace;overflow-x:auto;margin:0}.sheet{width:auto;max-width:1240px}"
KEY_STYLE = (
    ".key{display:flex;flex-wrap:wrap;gap:4px 14px;margin:0 0 6px}"
    ".key>span{display:inline-flex;align-items:center;gap:6px}"
    f".sw{{width:9px;height:9px;border-radius:50%;background:{LIGHT.text_3};print-color-adjust:exact}}"
    f".sw.open{{background:none;border:2px solid {LIGHT.text_3};box-sizing:border-box}}"
    + "".join(f".sw.cat{place}{{background:{color}}}" for place, color in enumerate(LIGHT.categories, start=1))
)


def document(found: Json, tables: str) -> str:
    """The whole file, in UTF-8 as it stands.

    Args:
        found: The summary that the command writes.
        tables: Its tables as text.
    """
    compared = comparison(found)
    parts: list[Child] = [
        html.H1("Does the noise scale predict the critical batch size?"),
        html.P(figures_words(compared), className="lede"),
        html.Div(compare_tasks.key(compared), className="key"),
        *_figures(compared),
        html.Section([html.H2("Tables"), html.Pre(Markup(literal(tables)))]),
    ]
    body = html.Main(html.Article(parts, className="sheet"))
    return page("noisescale reproduce", body, style=STYLE + KEY_STYLE)


def _figures(found: Comparison) -> list[html.Div]:
    described = "Critical batch size over noise scale, each task in its own unit, with 95 % intervals"
    return [
        html.Div(html.Figure([_svg(found, name, width, described), _caption(found)]), className=name)
        for name, width in (("wide", WIDE), ("narrow", NARROW))
    ]


def _svg(found: Comparison, name: str, width: int, described: str) -> Markup:
    figure = noise_scale_against_critical_batch(found, narrow=name == "narrow")
    return Markup(as_svg(figure, width=width, name=name, description=described))


def _caption(found: Comparison) -> html.Figcaption:
    return html.Figcaption(f"B_crit over the noise scale, log–log. {figure_caption(found)}")
