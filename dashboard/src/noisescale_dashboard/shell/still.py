"""Trees of plain elements that no callback ever asks or changes, as one component."""

from collections.abc import Sequence
from typing import Any

import orjson
from dash.development.base_component import Component

PLAIN = "dash_html_components"
Tree = Component | str | int | float | None


class Still(Component):
    """One component for a whole tree of `dash.html` elements, drawn by assets/modules/shell/still.js.

    Dash's renderer looks at every component of a page whenever a property of any of them changes, and its server at
    every component of an answer, so each one makes all that moves on the page slower. The tree travels as one text.
    Elements in here may have an id for styles and links; callbacks do not see it.

    Args:
        tree: What is drawn.

    Raises:
        TypeError: If something in it is more than an element of HTML.
    """

    _children_props: list[str] = []  # noqa: RUF012  # as the base class says it
    _base_nodes: list[str] = []  # noqa: RUF012  # the same
    _namespace = "noisescale_dashboard"
    _type = "Still"

    def __init__(self, tree: Tree | Sequence[Tree]) -> None:
        self._prop_names = ["json"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = ["json"]
        self.available_wildcard_properties: list[str] = []
        try:
            text = orjson.dumps(tree, default=_plain).decode()
        except orjson.JSONEncodeError as error:
            raise error.__cause__ or error from None
        super().__init__(json=text)


def _plain(tree: Any) -> Any:
    if not isinstance(tree, Component) or tree._namespace not in (PLAIN, Still._namespace):
        raise TypeError(f"{type(tree).__name__} is more than an element of HTML: leave it out of Still")
    return tree.to_plotly_json()
