"""Rows and columns of the table of runs: every cell is ready-made text or numbers, drawn by assets/grid.js."""

import math
from collections.abc import Sequence
from typing import Any

from noisescale_dashboard.answers import Run
from noisescale_dashboard.number_format import NOTHING, count, share, share_span, si, significant, span
from noisescale_dashboard.pages import runs_columns
from noisescale_dashboard.pages.parts import DECISION_STYLES, decision_label
from noisescale_dashboard.sentences import interval_words, noun_of, short_noun_of, state_of, state_words
from noisescale_dashboard.series_answers import Points

PAGE_SIZE = 50
ROW_HEIGHT, NARROW_ROW_HEIGHT, HEADER_HEIGHT = 40, 74, 36
SORTS = {
    "name": "name",
    "noise": "noise_scale",
    "decision": "misfit",
    "batch": "global_batch",
    "efficiency": "example_efficiency",
    "loss": "loss",
    "step": "last_step",
}
"""Column → the word by which the API sorts."""
NAME_LIMIT = 200
LONGEST_BATCH, LONGEST_LOSS = 1e7, 7
"""Larger batches, and losses of more characters, are shortened: a cell that is too narrow cuts digits off."""

THEME = (
    "themeQuartz.withParams({backgroundColor:'var(--panel)',foregroundColor:'var(--t1)',borderColor:'var(--line)',"
    "headerBackgroundColor:'transparent',headerTextColor:'var(--t3)',accentColor:'var(--acc)',"
    "selectedRowBackgroundColor:'var(--acc-bg)',rowHoverColor:'var(--sunken)',wrapperBorder:false,"
    "headerColumnBorder:false,headerColumnResizeHandleColor:'transparent',rowBorder:{color:'var(--line)'},"
    "fontFamily:'inherit',headerFontWeight:500,headerFontSize:12,fontSize:13,cellHorizontalPadding:12,iconSize:14,"
    "browserColorScheme:'inherit'})"
)


def selection(*, narrow: bool) -> dict[str, Any]:
    """Rows are chosen by their boxes; a click on a row is left to its link."""
    box = {"width": 40 if narrow else 44, "suppressHeaderMenuButton": True, "sortable": False, "resizable": False}
    return {
        "rowSelection": {"mode": "multiRow", "checkboxes": True, "headerCheckbox": True, "enableClickSelection": False},
        "selectionColumnDef": box,
    }


ANY_COLUMN = {
    "sortable": True,
    "resizable": True,
    "suppressHeaderMenuButton": True,
    "suppressMovable": True,
    "sortingOrder": ["desc", "asc"],
    # cells are drawn from ready-made words; the grid need not guess what they are
    "cellDataType": False,
}


def row(run: Run, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """One run as the table shows it, with the chosen further columns."""
    estimate = run.noise_scale
    efficiency = run.example_efficiency
    return {
        "id": run.id,
        "name": run.name[:NAME_LIMIT],
        "status": state_of(run),
        "statusWords": state_words(run),
        "tags": [tag[:NAME_LIMIT] for tag in run.tags],
        "project": run.project,
        "archived": run.archived,
        "stamp": run.updated_at,
        "noise": si(estimate.value) if estimate.value is not None else _bound(estimate.low),
        "state": estimate.state,
        "interval": span(estimate.low, estimate.high, dense=True) if estimate.value is not None else "",
        "noiseTitle": _noise_title(run),
        "unit": short_noun_of(run),
        "batch": _exact(run.global_batch),
        "fit": fit(run),
        "decision": DECISION_STYLES.get(run.decision.decision, "ins"),
        "decisionWords": decision_label(run),
        "decisionTitle": run.decision.reason or "",
        "efficiency": share(efficiency.value),
        "efficiencyTitle": "" if efficiency.value is None else f"95 %: {share_span(efficiency.low, efficiency.high)}",
        "loss": _loss(run.loss),
        "step": si(run.last_step) if run.last_step is not None else NOTHING,
        "more": {f"more {name}": runs_columns.words(run, name) for name in chosen},
        "moreLine": " · ".join(
            f"{runs_columns.label(name)} {words}" for name in chosen if (words := runs_columns.words(run, name))
        ),
        "stepTitle": f"step {count(run.last_step)}" if run.last_step is not None else "no step yet",
    }


def _exact(batch: float | None) -> str:
    """All digits of a batch where they fit into the column."""
    return count(batch) if batch is None or abs(batch) < LONGEST_BATCH else si(batch, 4)


def _loss(loss: float | None) -> str:
    words = significant(loss, 4)
    return words if len(words) <= LONGEST_LOSS else si(loss, 4)


def _noise_title(run: Run) -> str:
    estimate = run.noise_scale
    value = "" if estimate.value is None else f"{significant(estimate.value)} {noun_of(run)}, "
    until = "" if estimate.step is None else f", until step {count(estimate.step)}"
    return f"{value}{interval_words(estimate)}{until}"


def _bound(low: float | None) -> str:
    return f"> {si(low)}" if low is not None else "not resolved"


def fit(run: Run) -> dict[str, Any] | None:
    """Batch ÷ recommended with its interval; `open`: only the side that stays possible is known."""
    batch, decision = run.global_batch, run.decision
    if not batch:
        return None
    if decision.batch_size:
        ratio = batch / decision.batch_size
        low = batch / decision.high if decision.high else ratio
        high = batch / decision.low if decision.low else ratio
        words = f"batch ÷ recommended {significant(ratio, 2)}, 95 %: {span(low, high)}"
        return {"at": ratio, "low": low, "high": high, "open": False, "words": words}
    if run.noise_scale.value is None and run.noise_scale.low:
        ratio = batch / run.noise_scale.low
        words = f"batch ÷ recommended below {significant(ratio, 2)}, not resolved"
        return {"at": ratio, "low": None, "high": None, "open": True, "words": words}
    return None


def sparkline(points: Points) -> dict[str, Any] | None:
    """Noise scale, band and batch as log₁₀ values with a common range; None without a single point."""
    columns = {
        "y": [_log(v) for v in points.value],
        "low": [_log(v) for v in points.low],
        "high": [_log(h) if v is not None else None for h, v in zip(points.high, points.value, strict=True)],
        "batch": [_log(v) for v in points.global_batch],
    }
    shown = [*columns["y"], *columns["batch"], *columns["low"]]
    known = [v for v in shown if v is not None]
    if len(points.step) < 2 or not known:
        return None
    return {**columns, "min": min(known) - 0.1, "max": max(known) + 0.1}


def _log(value: float | None) -> float | None:
    return round(math.log10(value), 3) if value is not None and value > 0 else None


def columns(sort: str, chosen: Sequence[str] = (), *, narrow: bool) -> list[dict[str, Any]]:
    """Column definitions; `sort` is the API's word and direction, such as "-loss"; `chosen`: further columns."""
    if narrow:
        # of the whole row, not of its name: the grid draws a cell again only when its value is another
        value = {"valueGetter": {"function": "params.data"}}
        line = {"colId": "name", "headerName": "Run", "cellRenderer": "RunLine", "flex": 1, "sortable": False, **value}
        # a line may have one more below it, with the chosen columns
        return [line | ({"autoHeight": True} if chosen else {})]
    wide: list[dict[str, Any]] = [
        {"field": "name", "headerName": "Run", "cellRenderer": "RunName", "minWidth": 200, "flex": 1},
        {"field": "spark", "headerName": "Over training", "cellRenderer": "Spark", "width": 142, "sortable": False},
        {"field": "noise", "headerName": "Noise scale, 95 %", "cellRenderer": "NoiseScale", "width": 156},
        {"field": "batch", "headerName": "Batch", "cellRenderer": "Batch", "width": 124},
        {"field": "fit", "headerName": "Fit", "cellRenderer": "Fit", "width": 122, "sortable": False},
        {"field": "decision", "headerName": "Decision", "cellRenderer": "Decision", "width": 142},
        {"field": "efficiency", "headerName": "Efficiency", "cellRenderer": "Efficiency", "width": 98},
        {"field": "loss", "headerName": "Loss", "width": 80},
        {"field": "step", "headerName": "Step", "cellRenderer": "Step", "width": 78},
    ]
    wide += [
        {
            "colId": f"more {name}",
            "headerName": runs_columns.label(name),
            "cellRenderer": "More",
            "width": 130,
            "sortable": False,
            "headerTooltip": runs_columns.TOOLTIPS.get(name),
        }
        for name in chosen
    ]
    tooltips = {
        "decision": "sorted by what a change would save: how far the batch is from the noise scale",
        "fit": "batch ÷ recommended batch; shaded: within 2 ×",
        "efficiency": "example efficiency: how much of each example is used",
    }
    for column in wide:
        name = column.get("field", "")
        column.setdefault("headerTooltip", tooltips.get(name))
        if name in ("noise", "batch", "efficiency", "loss", "step"):
            column["type"] = "rightAligned"
        if name in SORTS:
            # the server sorts; the grid only shows by what
            column["colId"] = SORTS[name]
            column["comparator"] = {"function": "keepOrder"}
            column["sort"] = _direction(sort, SORTS[name])
    return wide


def _direction(sort: str, word: str) -> str | None:
    return {word: "asc", f"-{word}": "desc"}.get(sort)


def grid_height(num_rows: int, *, narrow: bool) -> str:
    """CSS height: as tall as its rows, at most what the window leaves."""
    row_height = NARROW_ROW_HEIGHT if narrow else ROW_HEIGHT
    rows = num_rows * row_height + (0 if narrow else HEADER_HEIGHT) + 2
    return f"min({max(rows, 120)}px, max(320px, calc(100vh - {330 if narrow else 236}px)))"
