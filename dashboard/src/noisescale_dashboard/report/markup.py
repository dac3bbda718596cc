"""Dash's HTML components as text, so that the pages' parts make a document that needs no script."""

from collections.abc import Iterator
from typing import Any

from dash.development.base_component import Component

from noisescale_dashboard.figures.svg.markup import literal

HTML_COMPONENTS = "dash_html_components"
_VOID = frozenset({"br", "hr", "img", "link", "meta"})
_NAMES = {"className": "class", "htmlFor": "for"}
LONGEST = 2_000
"""Characters of one piece of text, wherever it comes from: two pages hold no more."""


class Markup(str):
    """HTML of ours that goes in as it is: a drawing. Nothing that a user has written may become one unescaped."""

    __slots__ = ()


def to_html(part: Any) -> str:
    """A component, or several, as HTML; text is escaped.

    Raises:
        ValueError: For a component that only a browser's script draws.
    """
    if part is None:
        return ""
    if isinstance(part, Markup):
        return str(part)
    if isinstance(part, list | tuple):
        return "".join(to_html(one) for one in part)
    if not isinstance(part, Component):
        return text(str(part))
    found = part.to_plotly_json()
    if found["namespace"] != HTML_COMPONENTS:
        raise ValueError(f"{found['type']} needs a script: only components of dash.html can be printed")
    name, props = found["type"].lower(), dict(found["props"])
    inside = to_html(props.pop("children", None))
    opened = f"<{name}{''.join(_attributes(props))}>"
    return opened if name in _VOID else f"{opened}{inside}</{name}>"


def text(words: str) -> str:
    """`words` as HTML shows them literally."""
    return literal(cut(words, LONGEST))


def cut(words: str, limit: int) -> str:
    """`words`, at most so many characters of them."""
    return words if len(words) <= limit else words[: limit - 1] + "…"


def _attributes(props: dict[str, Any]) -> Iterator[str]:
    for key, value in props.items():
        name = _NAMES.get(key, key.lower())
        if value is True:
            yield f" {name}"
        elif value not in (None, False, ""):
            yield f' {name}="{text(str(value))}"'
