"""Trees of plain elements that no callback ever asks or changes, as one component."""

from collections.abc import Sequence
from typing import Any

from dash.development.base_component import Component

PLAIN = "dash_html_components"
Tree = Component | str | int | float | None


class Still(Component):
    """One component for a whole tree of `dash.html` elements, drawn by assets/05-still.js.

    Dash's renderer looks at every component of a page whenever a property of any of them changes, so each one makes
    all that moves on the page slower. Elements in here may have an id for styles and links; callbacks do not see it.

    Args:
        tree: What is drawn.

    Raises:
        TypeError: If something in it is more than an element of HTML.
    """

    _children_props: list[str] = []  # noqa: RUF012  # as the base class says it
    # where components may stand: Dash refuses them elsewhere
    _base_nodes = ["tree"]  # noqa: RUF012  # the same
    _namespace = "noisescale_dashboard"
    _type = "Still"

    def __init__(self, tree: Tree | Sequence[Tree]) -> None:
        for one in tree if isinstance(tree, (list, tuple)) else [tree]:
            _check(one)
        self._prop_names = ["tree"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = ["tree"]
        self.available_wildcard_properties: list[str] = []
        super().__init__(tree=tree)


def _check(tree: Any) -> None:
    for one in [tree, *tree._traverse()] if isinstance(tree, Component) else ():
        if isinstance(one, Component) and one._namespace not in (PLAIN, Still._namespace):
            raise TypeError(f"{type(one).__name__} is more than an element of HTML: leave it out of Still")
