"""plotly's checks of what our figures hand over, which they leave out in service."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plotly.graph_objects as go
import pytest

from noisescale_dashboard.figures.parts.drawing import Drawing

PLOTLYS_OWN = ("update_layout", "update_xaxes", "update_yaxes", "add_scatter", "add_bar", "add_heatmap")
LISTS = {"annotations": go.layout.Annotation, "shapes": go.layout.Shape}


@contextmanager
def checked_figures() -> Iterator[None]:
    """Make plotly check every setting that a figure is given: most of the layout comes again, and is checked once."""
    seen: set[str] = set()
    update_layout, with_trace, listing = Drawing.update_layout, Drawing._with, Drawing._listing

    def checked_layout(figure: Drawing, **changes: Any) -> Drawing:
        if (key := repr(changes)) not in seen:
            go.Layout(**changes)
            seen.add(key)
        return update_layout(figure, **changes)

    def checked_trace(figure: Drawing, kind: type[Any], trace: dict[str, Any]) -> Drawing:
        kind(**trace)
        return with_trace(figure, kind, trace)

    def checked_listing(figure: Drawing, name: str, one: dict[str, Any]) -> Drawing:
        LISTS[name](**one)
        return listing(figure, name, one)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drawing, "update_layout", checked_layout)
        patch.setattr(Drawing, "_with", checked_trace)
        patch.setattr(Drawing, "_listing", checked_listing)
        yield


@contextmanager
def figures_of_plotly() -> Iterator[None]:
    """Make every figure by plotly's own methods."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*PLOTLYS_OWN, "add_annotation", "add_shape"):
            patch.setattr(Drawing, name, getattr(go.Figure, name))
        yield
