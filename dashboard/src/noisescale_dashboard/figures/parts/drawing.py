"""A figure that takes its traces and its layout as they are given."""

import re
from typing import Any, Final

import orjson
import plotly.graph_objects as go
import plotly.io

AXIS: Final = re.compile(r"([xy]axis)\d*")
ENCODING: Final = orjson.OPT_SERIALIZE_NUMPY
# every figure would be made with a copy of plotly's look, and carry it to the browser below our own
plotly.io.templates.default = None


class Drawing(go.Figure):
    """A plotly figure without plotly's checks and copies of the commonest traces and of the layout.

    plotly checks and copies a trace when it is made, again when it is added, and all of the figure once more for the
    browser; a change of the layout costs it 1 to 8 ms. That is most of the time of drawing a page, on the event loop
    that also takes measurements in. What our figures hand over is checked in the tests instead.
    """

    def update_layout(self, **changes: Any) -> "Drawing":  # type: ignore[override]  # all by keyword, in dicts
        """The figure with these changes of its layout; None takes a setting away."""
        _merge(self._layout, changes)
        return self

    def update_xaxes(self, **changes: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with these changes of all its x axes."""
        return self._update_axes("xaxis", changes)

    def update_yaxes(self, **changes: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with these changes of all its y axes."""
        return self._update_axes("yaxis", changes)

    def add_scatter(self, **trace: Any) -> "Drawing":  # type: ignore[override]  # all by keyword, as plotly takes them
        """The figure with this trace."""
        return self._with(go.Scatter, trace)

    def add_bar(self, **trace: Any) -> "Drawing":  # type: ignore[override]  # all by keyword, as plotly takes them
        """The figure with this trace."""
        return self._with(go.Bar, trace)

    def add_heatmap(self, **trace: Any) -> "Drawing":  # type: ignore[override]  # all by keyword, as plotly takes them
        """The figure with this trace."""
        return self._with(go.Heatmap, trace)

    def add_annotation(self, **annotation: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with this annotation; plotly would make all the others again, too."""
        if "row" in annotation:
            super().add_annotation(**annotation)
            return self
        return self._listing("annotations", annotation)

    def add_shape(self, **shape: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with this shape."""
        if "row" in shape:
            super().add_shape(**shape)
            return self
        return self._listing("shapes", shape)

    def add_vline(self, x: float, **shape: Any) -> "Drawing":  # type: ignore[override]  # one plot, and no words of its own
        """The figure with a line over all of its height."""
        return self._spanning("x", "y", {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, **shape})

    def add_hline(self, y: float, **shape: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with a line over all of its width."""
        return self._spanning("y", "x", {"type": "line", "x0": 0, "x1": 1, "y0": y, "y1": y, **shape})

    def add_hrect(self, y0: float, y1: float, **shape: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with a band over all of its width."""
        return self._spanning("y", "x", {"type": "rect", "x0": 0, "x1": 1, "y0": y0, "y1": y1, **shape})

    def _spanning(self, across: str, along: str, shape: dict[str, Any]) -> "Drawing":
        """The figure with a shape that ends with the plot; plotly takes its time to find out which plots there are."""
        return self.add_shape(**shape, **{f"{across}ref": across, f"{along}ref": f"{along} domain"})

    def to_plotly_json(self) -> dict[str, Any]:
        """`{"json": text}`, the text being that of traces and layout, which assets/modules/shell/figures.js reads.

        Dash writes what callbacks return with an encoder in Python; one long text costs it next to nothing.
        """
        # numbers that are none become null, as in plotly's own encoder
        return {"json": orjson.dumps({"data": self._data, "layout": self._layout}, option=ENCODING).decode()}

    def _update_axes(self, kind: str, changes: dict[str, Any]) -> "Drawing":
        found = (name for name in self._layout if (match := AXIS.fullmatch(name)) and match[1] == kind)
        return self.update_layout(**dict.fromkeys(found, changes))

    def _with(self, kind: type[Any], trace: dict[str, Any]) -> "Drawing":
        made = kind(_validate=False, **trace)
        # what BaseFigure.add_traces does, without its second check and its copy
        self._data.append(made._props)
        self._data_defaults.append({})
        made._parent, made._trace_ind = self, len(self._data) - 1
        self._data_objs += (made,)
        return self

    def _listing(self, name: str, one: dict[str, Any]) -> "Drawing":
        self._layout.setdefault(name, []).append(one)
        # what was read of the list before is of a shorter one
        self.layout._compound_array_props.pop(name, None)
        return self


def _merge(settings: dict[str, Any], changes: dict[str, Any]) -> None:
    """Change settings as plotly does: those below another one by one."""
    for name, value in changes.items():
        if value is None:
            settings.pop(name, None)
        elif isinstance(value, dict):
            # a dict of its own: the caller's may be that of several axes
            _merge(settings.setdefault(name, {}), value)
        else:
            settings[name] = value
