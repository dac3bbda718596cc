"""The data behind a figure as named columns, for the export and the table of its card's menu."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

Cell = float | str | bool | None


def attach_table(figure: go.Figure, columns: Mapping[str, Sequence[Cell]]) -> None:
    """Give `figure` the columns that its card exports, all of one length; names carry the unit.

    Raises:
        ValueError: Where columns differ in length.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have one length, got {lengths}: fill what is not known with None")
    figure.update_layout(meta={"columns": [[name, list(values)] for name, values in columns.items()]})


def attached_columns(figure: go.Figure) -> dict[str, list[Cell]]:
    """The columns that were attached; none where nothing was."""
    return dict((figure.layout.meta or {}).get("columns", ()))
