"""A figure that takes its traces as they are given."""

from typing import Any, ClassVar

import plotly.graph_objects as go


class Drawing(go.Figure):
    """A plotly figure without plotly's checks and copies of the commonest traces.

    plotly checks and copies a trace when it is made, again when it is added, and all of the figure once more for the
    browser: half of the time of drawing a run, on the event loop that also takes measurements in. What our figures hand
    over is checked in their tests instead, where `is_checked` is set.
    """

    is_checked: ClassVar[bool] = False

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
        if not self._has_taken("annotations", annotation):
            super().add_annotation(**annotation)
        return self

    def add_shape(self, **shape: Any) -> "Drawing":  # type: ignore[override]  # as above
        """The figure with this shape; those that span an axis are left to plotly."""
        if not self._has_taken("shapes", shape):
            super().add_shape(**shape)
        return self

    def to_plotly_json(self) -> dict[str, Any]:
        """Traces and layout as the browser takes them: not copied, so nobody may change them."""
        return {"data": self._data, "layout": self._layout}

    def _with(self, kind: type[Any], trace: dict[str, Any]) -> "Drawing":
        if self.is_checked:
            self.add_trace(kind(**trace))
            return self
        made = kind(_validate=False, **trace)
        # what BaseFigure.add_traces does, without its second check and its copy
        self._data.append(made._props)
        self._data_defaults.append({})
        made._parent, made._trace_ind = self, len(self._data) - 1
        self._data_objs += (made,)
        return self

    def _has_taken(self, name: str, one: dict[str, Any]) -> bool:
        """True if a list of the layout has this as one more; False where that is left to plotly."""
        if self.is_checked or "row" in one:
            return False
        self._layout.setdefault(name, []).append(one)
        # what was read of the list before is of a shorter one
        self.layout._compound_array_props.pop(name, None)
        return True
