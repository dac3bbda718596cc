"""Pieces that all pages are made of: card, fact, pill, note, icon. Text goes in as text, never as markup."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.shell.explained import Child, Children, aria, explained, listed
from noisescale_dashboard.shell.how import How
from noisescale_dashboard.shell.how_computed import HOW, NOTHING_COMPUTED
from noisescale_dashboard.shell.still import Still
from noisescale_dashboard.words.learn_sections import SECTIONS
from noisescale_dashboard.words.number_format import count, unbroken
from noisescale_dashboard.words.sentences import state_of, state_words
from noisescale_dashboard.words.term import anchor
from noisescale_dashboard.words.terms import TERMS

GRAPH_CONFIG: Any = {
    "displayModeBar": False,
    "responsive": True,
    "scrollZoom": False,
    # "reset" would go back to the zoomed range when the page was opened at one
    "doubleClick": "autosize",
    "typesetMath": False,
}
DECISION_STYLES = {
    "increase": "inc", "decrease": "dec", "keep": "keep", "probably_increase": "inc", "probably_decrease": "dec",
}  # fmt: skip
DECISION_ICONS = {"inc": "up", "dec": "down", "keep": "equal", "ins": "dash"}
LINK_ACTION = ("link", "Copy link to this view", "link")
JSON_ACTION = ("json", "Data as JSON", "download")
HOW_ACTION = ("how", "How this is computed", "info")
TABLE_ACTIONS = (("csv", "Data as CSV", "download"), JSON_ACTION, LINK_ACTION)
FIGURE_ACTIONS = (
    ("png", "Picture as PNG", "download"),
    ("svg", "Picture as SVG", "download"),
    ("csv", "Data as CSV", "download"),
    JSON_ACTION,
    ("table", "Show as table", "columns"),
    LINK_ACTION,
)
"""What a card's menu does: the word that the browser knows it by, the words that are shown, the icon."""
STATUS_STYLES = {"silent": "stalled", "crashed": "stalled"}


def labelled(cells: Sequence[html.Td], words: Sequence[str]) -> list[html.Td]:
    """Cells that know the words at the head of their columns: a phone writes them beside each (`.tb.fold`)."""
    for cell, word in zip(cells, words, strict=True):
        setattr(cell, "data-word", word)
    return list(cells)


def icon(name: str, size: str = "") -> html.Span:
    """An icon beside a word; silent for screen readers."""
    return html.Span(className=f"i i-{name} {size}".strip(), **aria({"aria-hidden": "true"}))


def link(
    children: Children, href: str, *, class_name: str = "", is_current: bool = False, title: str | None = None
) -> html.A:
    """A link to a page of ours, followed without loading everything again (assets/modules/shell/history.js)."""
    more = {"aria-current": "page"} if is_current else {}
    more |= {"title": title} if title else {}
    return html.A(listed(children), href=href, className=class_name, **aria({"data-go": "page", **more}))


def card(
    title: str,
    subtitle: Children,
    body: Children,
    *,
    card_id: str,
    actions: Children = None,
    footer: Children = None,
    class_name: str = "",
    is_figure: bool = False,
    has_table: bool = False,
) -> html.Section:
    """A card: title, subtitle (unit, scale, what the band is), controls, body, footer.

    What a figure shows can be taken away as picture or data, what a table shows as data, from the menu at the right,
    which also says how it is computed.
    """
    actions_of_menu = FIGURE_ACTIONS if is_figure else TABLE_ACTIONS if has_table else (LINK_ACTION,)
    menu = None if card_id in NOTHING_COMPUTED else card_menu(actions_of_menu, card_id)
    head = html.Div(
        [
            html.Div(
                [
                    html.H2(explained(title), className="tt", id=f"{card_id}-title"),
                    html.Div(explained(subtitle), className="st", id=f"{card_id}-subtitle"),
                ]
            ),
            html.Div(listed(actions), className="ac"),
            *listed(menu),
        ],
        className="hd",
    )
    foot = [html.Div(listed(footer), className="ft", id=f"{card_id}-footer")] if footer is not None else []
    return html.Section(
        [head, html.Div(listed(body), className="bd fig" if is_figure else "bd"), *foot],
        className=f"card {class_name}".strip(),
        **aria({"aria-labelledby": f"{card_id}-title"}),
    )


def card_menu(actions: Sequence[tuple[str, str, str]], card_id: str) -> Still:
    """The menu of a card; what its buttons do is in assets/modules/card/menu.js."""
    buttons = [menu_button(action) for action in (*actions, HOW_ACTION)]
    return Still(
        html.Details(
            [
                html.Summary(icon("more"), className="ib", **aria({"aria-label": "Export, data, link, how computed"})),
                html.Div([*buttons, explanation(card_id)], className="dropdown"),
            ],
            className="details card-menu",
        )
    )


def menu_button(action: tuple[str, str, str]) -> html.Button:
    """A line of a card's menu."""
    name, words, icon_name = action
    return html.Button([icon(icon_name, "sm"), words], type="button", **aria({"data-card-action": name}))


def explanation(card_id: str) -> html.Div:
    """How what the card shows is computed, in place of the menu's buttons once it is asked for."""
    how = HOW[card_id]
    return html.Div(
        [html.B("How this is computed"), html.P(unbroken(how.text)), html.P(_read_on(how), className="dim small")],
        className="how-computed",
        tabIndex="-1",
    )


def _read_on(how: How) -> list[Child]:
    """The source, the section of Learn that it belongs to, and the terms that Learn explains."""
    source: list[Child] = [f"{how.source}. "] if how.source else []
    section = link(SECTIONS[how.section].title, f"/learn#{how.section}")
    words = [part for key in how.terms for part in (", ", link(TERMS[key].word, f"/learn#{anchor(key)}"))][1:]
    return [*source, "Read on: ", section, *([" Words: ", *words, "."] if words else [])]


def figure_box(graph_id: str, *, card_id: str, height: int) -> html.Figure:
    """A figure with its description for those who do not see it. Height in pixels, so that nothing jumps."""
    return html.Figure(
        [
            dcc.Graph(
                id=graph_id,
                figure={"data": [], "layout": _nothing_yet(height)},
                config=GRAPH_CONFIG,
                clear_on_unhover=True,
                style={"width": "100%", "minHeight": height},
            ),
            html.Figcaption(id=f"{graph_id}-sentence", className="sr-only"),
        ],
        className="figure",
        **aria({"aria-labelledby": f"{card_id}-title", "aria-describedby": f"{graph_id}-sentence"}),
    )


def _nothing_yet(height: int) -> dict[str, Any]:
    hidden = {"visible": False, "fixedrange": True}
    transparent = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    return {"height": height, "xaxis": hidden, "yaxis": hidden, "template": None, **transparent}


def fact(
    label: str,
    value: str,
    unit: str = "",
    context: str = "",
    *,
    swatch: str = "",
    tone: str = "",
    more: Children = None,
) -> html.Div:
    """One key figure of the facts strip, with more below its context."""
    key = [html.Span(className=f"sw {swatch}")] if swatch else []
    small = [html.Small(unit)] if unit else []
    return html.Div(
        [
            html.Div([*key, *explained(label)], className="k"),
            html.Div([value, *small], className=f"v {tone}".strip()),
            html.Div(context, className="s", title=context),
            *listed(more),
        ],
        className="fact",
    )


def status_dot(run: Run) -> html.Span:
    """The run's state as a mark of its own shape, with its words."""
    words, state = state_words(run), state_of(run)
    style = STATUS_STYLES.get(state, state)
    return html.Span(className=f"dot {style}", title=words, role="img", **aria({"aria-label": words}))


def decision_label(run: Run) -> str:
    """The words in a decision's pill; undecided is not unresolved: the noise scale may be known well."""
    batch = count(run.decision.batch_size)
    if run.divergence is not None:
        return "diverged"
    labels = {
        "increase": f"raise to {batch}",
        "decrease": f"lower to {batch}",
        "probably_increase": "probably raise",
        "probably_decrease": "probably lower",
        "keep": "keep",
        "keep_for_now": "keep for now",
    }
    return labels.get(run.decision.decision, "not resolved" if run.noise_scale.value is None else "undecided")


def note(children: Children, *, icon_name: str = "warn", quiet: bool = False) -> html.Div:
    """A caution (amber) or a remark (quiet)."""
    return html.Div([icon(icon_name, "sm"), html.Span(listed(children))], className="note q" if quiet else "note")


def key_values(rows: Sequence[tuple[str, Child]]) -> html.Table:
    """Two columns: what, and its value."""
    return html.Table(
        [html.Tbody([html.Tr([html.Th(key, scope="row"), html.Td(value)]) for key, value in rows])], className="tb kv"
    )


def preference_slider(page: str, fewest_examples: html.Span) -> html.Div:
    """The slider of the preference with its word, its ends below; ids begin with the page's name.

    Args:
        page: "run" or "planner".
        fewest_examples: What stands at the left end.
    """
    return html.Div(
        [
            html.Div([html.Span("Preference"), html.B(id=f"{page}-pref-word")], className="l"),
            dmc.Slider(
                id=f"{page}-pref",
                min=0.05,
                max=0.95,
                step=0.05,
                value=0.5,
                label=None,
                size="sm",
                thumbLabel="Preference, from fewest examples to fewest steps",
            ),
            html.Div([fewest_examples, html.Span("fewest steps")], className="ends"),
        ],
        className="fld",
    )
