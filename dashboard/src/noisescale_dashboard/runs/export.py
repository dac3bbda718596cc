"""The list of runs as a file: every run of a view, page by page from the API as the browser takes it."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from noisescale_dashboard.answers.common import Run, RunPage
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.runs import view as runs_view

ADDRESS = "/exports/runs.csv"
AT_ONCE = 500
"""Runs of one request; the API gives no more."""
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would run."""

COLUMNS: Final[Mapping[str, Callable[[Run], Any]]] = MappingProxyType(
    {
        "id": lambda run: run.id,
        "name": lambda run: run.name,
        "project": lambda run: run.project,
        "task": lambda run: run.task,
        "status": lambda run: run.status,
        "tags": lambda run: " ".join(run.tags),
        "created": lambda run: run.created_at,
        "last data": lambda run: run.updated_at,
        "step": lambda run: run.last_step,
        "loss": lambda run: run.loss,
        "batch (examples)": lambda run: run.global_batch,
        "noise scale (examples)": lambda run: run.noise_scale.value,
        "noise scale, lower end 95 %": lambda run: run.noise_scale.low,
        "noise scale, upper end 95 %": lambda run: run.noise_scale.high,
        "state": lambda run: run.noise_scale.state,
        "measured from": lambda run: run.estimator,
        "decision": lambda run: run.decision.decision,
        "recommended batch (examples)": lambda run: run.decision.batch_size,
        "recommended, lower end 95 %": lambda run: run.decision.low,
        "recommended, upper end 95 %": lambda run: run.decision.high,
        "probability that it is cheaper": lambda run: run.decision.probability,
        "expected saving (share of the cost)": lambda run: run.decision.saving,
        "example efficiency": lambda run: run.example_efficiency.value,
        "example efficiency, lower end 95 %": lambda run: run.example_efficiency.low,
        "example efficiency, upper end 95 %": lambda run: run.example_efficiency.high,
        "kappa": lambda run: run.kappa.value,
        "kappa, lower end 95 %": lambda run: run.kappa.low,
        "kappa, upper end 95 %": lambda run: run.kappa.high,
        "sweeps, branches and followed runs behind kappa": lambda run: run.kappa.measurements,
        "optimizer": lambda run: run.optimizer,
        "learning rate": lambda run: run.lr,
        "examples": lambda run: run.examples,
        "devices": lambda run: run.num_devices,
        "device": lambda run: run.device,
        "example": lambda run: run.example,
        "unit": lambda run: run.unit,
        "units per example": lambda run: run.units_per_example,
    }
)
"""Name of each column, in full precision."""


def add_download(app: FastAPI, api: ApiClient) -> None:
    """The address at which the list of a view is a file."""

    @app.get(ADDRESS, include_in_schema=False)
    async def download(request: Request) -> Response:
        view, visitor = runs_view.view_of(request.query_params), visitor_headers(request.headers)
        # a file has a line a run
        view["trials"] = "show" if view["trials"] == "fold" else view["trials"]
        try:
            first = await api.runs(visitor, runs_view.query(view, None, limit=AT_ONCE))
        except ApiProblem as problem:
            return PlainTextResponse(f"{problem.title}: {problem.detail}\n", status_code=problem.status or 503)
        return StreamingResponse(
            lines(api, visitor, view, first),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="noisescale-runs.csv"'},
        )


async def lines(
    api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any], page: RunPage
) -> AsyncIterator[str]:
    """The names of the columns, then a line a run; ends early, and so says it, where the API does not answer."""
    keys = [name for name in runs_columns.chosen(view["cols"]) if name.startswith(runs_columns.CONFIG)]
    yield csv_lines([[*COLUMNS, *keys]])
    while True:
        yield csv_lines([_cells(run, keys) for run in page.runs])
        if page.next_cursor is None:
            return
        page = await api.runs(visitor, runs_view.query(view, page.next_cursor, limit=AT_ONCE))


def _cells(run: Run, keys: Sequence[str]) -> list[Any]:
    return [*(cell(run) for cell in COLUMNS.values()), *(runs_columns.words(run, key) for key in keys)]


def csv_lines(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV; texts that a spreadsheet would take for a formula begin with an apostrophe."""
    written = io.StringIO()
    csv.writer(written).writerows([[_harmless(cell) for cell in row] for row in rows])
    return written.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(DANGEROUS) else cell
