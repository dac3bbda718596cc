"""Rows and columns of the table of runs: ready-made text and numbers, drawn by assets/modules/runs/cells.js."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisescale_dashboard.answers.common import Fold, Run, RunGroup
from noisescale_dashboard.answers.series import Points
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.shell.parts import DECISION_STYLES, decision_label
from noisescale_dashboard.words.names import short_names
from noisescale_dashboard.words.number_format import NOTHING, count, share, share_span, si, significant, span
from noisescale_dashboard.words.sentences import interval_words, noun_of, short_noun_of, state_of, state_words

PAGE_SIZE = 50
ROW_HEIGHT, NARROW_ROW_HEIGHT, HEADER_HEIGHT = 40, 74, 36
SORTS = {
    "name": "name",
    "noise": "noise_scale",
    "fit": "misfit",
    "decision": "saving",
    "batch": "global_batch",
    "efficiency": "example_efficiency",
    "loss": "loss",
    "step": "last_step",
}
"""Column → the word by which the API sorts."""
NAME_LIMIT = 200
SHORT_NAME, SHORT_FOLD_NAME, SHORT_NARROW_NAME = 27, 56, 24
"""Characters of a name that fit into its column, across what a fold leaves empty, and on a phone."""
INDENT = 3
"""Characters fewer where a row stands below the one that it belongs to."""
FOLD = "fold"
"""The kind of a row that others stand behind."""
KIND_WORDS = {"sweep": "a sweep", "branch": "a branch", "reproduction": "the reproduction of a task"}
LONGEST_BATCH, SHORT_BATCH, LONGEST_LOSS = 1e7, 1e4, 7
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
        "rowSelection": {
            "mode": "multiRow",
            "checkboxes": True,
            "headerCheckbox": True,
            "enableClickSelection": False,
            # what several runs stand behind is no run
            "isRowSelectable": {"function": f"params.data.kind !== '{FOLD}'"},
            "hideDisabledCheckboxes": True,
        },
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
        "baseline": run.is_baseline,
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


def fold_row(run: Run, fold: Fold, key: str, *, is_open: bool) -> dict[str, Any]:
    """The trials of one sweep, branch or reproduction, which stand behind the first of them."""
    batches = " – ".join(_short(end) for end in dict.fromkeys((fold.batch_low, fold.batch_high)))
    trials = f"{count(fold.num_runs)} trial{'' if fold.num_runs == 1 else 's'}"
    return {
        **_folded(key, fold.name, trials, is_open=is_open),
        "href": "/reproduce" if fold.id is None else f"/sweeps/{fold.id}",
        "title": f"{fold.name}: {trials} of {KIND_WORDS.get(fold.kind, fold.kind)}",
        "batch": batches,
        # beside two numbers a unit has no room
        "unit": "",
        "batchTitle": f"batches in use, in {noun_of(run)}",
        "loss": _loss(fold.loss),
        "lossTitle": "the lowest of these runs",
    }


def group_row(group: RunGroup, by: str, key: str, *, is_open: bool) -> dict[str, Any]:
    """Runs that agree in something, with medians over them."""
    value = "not said" if group.value is None else group.value or "empty"
    runs = f"{count(group.num_runs)} run{'' if group.num_runs == 1 else 's'}"
    return {
        **_folded(key, value, runs, is_open=is_open),
        "title": f"{by} {value}: {runs}, {count(group.num_resolved)} of them resolved",
        "noise": si(group.noise_scale) if group.noise_scale is not None else "not resolved",
        "noiseTitle": f"median of {count(group.num_resolved)} resolved noise scales, in examples",
        "batch": _exact(group.global_batch),
        "unit": "ex",
        "loss": _loss(group.loss),
        "lossTitle": "median of the newest losses",
    }


def _folded(key: str, name: str, number: str, *, is_open: bool) -> dict[str, Any]:
    return {
        "id": key,
        "kind": FOLD,
        "open": is_open,
        "name": name[:NAME_LIMIT],
        "count": number,
        "href": None,
        "noise": "",
        "noiseTitle": "",
    }


def with_short_names(rows: Sequence[dict[str, Any]], *, narrow: bool) -> list[dict[str, Any]]:
    """The rows, each with a name that fits beside what else stands in its cell, told apart from the others."""
    found: dict[int, str] = {}
    rooms = [SHORT_NARROW_NAME if narrow else _room(one) for one in rows]
    for at_most in set(rooms):
        places = [place for place, room in enumerate(rooms) if room == at_most]
        short = short_names([rows[place]["name"] for place in places], at_most=at_most)
        found |= dict(zip(places, short, strict=True))
    return [{**one, "short": found[place]} for place, one in enumerate(rows)]


def _room(one: Mapping[str, Any]) -> int:
    if one.get("kind") == FOLD:
        return SHORT_FOLD_NAME
    return SHORT_NAME - (INDENT if one.get("child") else 0)


def _exact(batch: float | None) -> str:
    """All digits of a batch where they fit into the column."""
    return count(batch) if batch is None or abs(batch) < LONGEST_BATCH else si(batch, 4)


def _short(batch: float | None) -> str:
    return count(batch) if batch is None or batch < SHORT_BATCH else si(batch, 2)


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


OF_ROW = {
    # of the whole row, not of its name: the grid draws a cell again only when its value is another
    "valueGetter": {"function": "params.data"},
    # what stands behind one row has no curve, and mostly no noise scale of its own
    "colSpan": {"function": f"params.data.kind !== '{FOLD}' ? 1 : params.data.noise ? 2 : 3"},
}


def columns(sort: str, chosen: Sequence[str] = (), *, narrow: bool) -> list[dict[str, Any]]:
    """Column definitions; `sort` is the API's word and direction, such as "-loss"; `chosen`: further columns."""
    if narrow:
        line = {"colId": "name", "headerName": "Run", "cellRenderer": "RunLine", "flex": 1, "sortable": False}
        line |= {"valueGetter": OF_ROW["valueGetter"]}
        # a line may have one more below it, with the chosen columns
        return [line | ({"autoHeight": True} if chosen else {})]
    wide: list[dict[str, Any]] = [
        {"field": "name", "headerName": "Run", "cellRenderer": "RunName", "minWidth": 200, "flex": 1, **OF_ROW},
        {"field": "spark", "headerName": "Over training", "cellRenderer": "Spark", "width": 112, "sortable": False},
        {"field": "noise", "headerName": "Noise scale, 95 %", "cellRenderer": "NoiseScale", "width": 150},
        {"field": "batch", "headerName": "Batch", "cellRenderer": "Batch", "width": 112},
        {"field": "fit", "headerName": "Fit", "cellRenderer": "Fit", "width": 116},
        {"field": "decision", "headerName": "Decision", "cellRenderer": "Decision", "width": 152},
        {"field": "efficiency", "headerName": "Efficiency", "cellRenderer": "Efficiency", "width": 88},
        {"field": "loss", "headerName": "Loss", "cellRenderer": "Loss", "width": 78},
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
        "decision": "sorted by what a change is expected to save",
        "fit": "batch ÷ recommended batch; shaded: within 2 ×; sorted by how far the batch is from the noise scale",
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
