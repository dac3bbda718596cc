"""Dashboard and API on one event loop: a callback that waits for the API must not stop the loop."""

import asyncio
from typing import Any

import httpx

from dashboard_callbacks import Callbacks
from fakes_runs import RUNS
from fakes_sweeps import SWEEPS

RUN_VIEW = {"x": "step", "w": "auto", "from": None, "to": None, "layer": None, "kind": "simple", "pref": 0.5}
NOBODY = "00000000-0000-4000-8000-000000009999"
VALUES: dict[str, Any] = {
    "runs-view.data": {
        "q": "",
        "project": None,
        "task": None,
        "group": "config.hidden",
        "status": None,
        "tag": "",
        "since": "90d",
        "shelf": "current",
        "cols": "",
        "sort": "-misfit",
        "page": 0,
    },
    "runs-archive.n_clicks": 1,
    "runs-grid.selectedRows": [{"id": NOBODY, "tags": []}],
    "runs-purge.data": 1,
    "runs-done.data": {"words": "", "doomed": [NOBODY]},
    "runs-cursors.data": [None],
    "runs-rows.data": [{"id": RUNS[0].id, "stamp": "now"}],
    "runs-sparks.data": {},
    "runs-project.id": "runs-project",
    "overview-view.data": {"scope": "running", "pref": "0.5", "project": None},
    "overview-project.id": "overview-project",
    "run-series-view.data": RUN_VIEW,
    "run-pref-view.data": {"pref": 0.5},
    "run-slow-pulse.data": 1.0,
    "run-range-view.data": {"from": None, "to": None},
    "run-layer-kind.value": "map",
    "run-id.data": RUNS[0].id,
    "sweeps-view.data": {"tab": "published", "workload": None},
    "sweeps-rows.data": {"targets": {SWEEPS[0].id: 2.85}},
    "sweep-view.data": {"target": None, "regimes": "fit"},
    "sweep-shown.data": {"kind": "sweep", "target": 2.85, "first": 2.85, "unit": "sequences"},
    "sweep-ratio.value": "1.5",
    "sweep-id.data": SWEEPS[0].id,
    "address.pathname": "/runs",
    "narrow.data": False,
}


async def test_every_callback_answers_in_one_process(address: str) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=20) as client:
        callbacks = await Callbacks.of(client)
        outputs = [d["output"].strip(".").split("...")[0] for d in callbacks.server_side()]

        answers = await asyncio.gather(*(callbacks.post(output, VALUES) for output in outputs))

    assert len(answers) == len(outputs) >= 6
    assert all(answers)
