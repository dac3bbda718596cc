"""A value for every input and state of every callback, as a page that shows something would send it."""

from typing import Any

from fakes_runs import RUNS
from fakes_sweeps import SWEEPS
from noisescale_dashboard.pages.planner_query import FIELDS, FLAGS
from noisescale_dashboard.pages.planner_scope import KEPT
from noisescale_dashboard.pages.runs_view import NO_VIEW

RUN_VIEW = {
    "x": "step", "w": "auto", "from": None, "to": None, "layer": None, "kind": "simple", "pref": 0.5, "show": "terms",
    "linked": True, "envelope": True, "outside": False,
}  # fmt: skip
PLAN = {**dict.fromkeys((*FIELDS, *FLAGS, "project", "task", "target")), "run": RUNS[0].id, "pref": 0.5, "y": "usd"}
NOBODY = "00000000-0000-4000-8000-000000009999"
VALUES: dict[str, Any] = {
    "runs-view.data": {**NO_VIEW, "group": "config.hidden", "page": 0},
    "runs-archive.n_clicks": 1,
    "runs-grid.selectedRows": [{"id": NOBODY, "tags": []}],
    "runs-purge.data": 1,
    "runs-done.data": {"words": "", "doomed": [NOBODY]},
    "runs-cursors.data": [None],
    "runs-rows.data": [{"id": RUNS[0].id, "stamp": "now"}],
    "runs-sparks-wanted.data": {RUNS[0].id: "now"},
    "runs-project.id": "runs-project",
    "overview-view.data": {"scope": "running", "pref": "0.5", "project": None},
    "overview-project.id": "overview-project",
    "overview-shown.data": {"stamps": {RUNS[0].id: "now"}},
    "run-series-view.data": RUN_VIEW,
    "run-beside-asked.data": {"view": RUN_VIEW},
    "run-pref-view.data": {"pref": 0.5},
    "run-slow-pulse.data": 1.0,
    "run-layers-asked.data": {"from": None, "to": None, "layers": "map", "term": "noise"},
    "run-records-asked.data": {"at": 1.0},
    "run-id.data": RUNS[0].id,
    "run-save.n_clicks": 1,
    "run-name.value": RUNS[0].name,
    "run-said.data": {"name": RUNS[0].name, "tags": [], "remarks": ""},
    "sweeps-view.data": {"tab": "published", "workload": None},
    "record-asked.data": 1,
    "sweeps-rows.data": {"fitted": [SWEEPS[0].id]},
    "sweep-view.data": {"target": None, "regimes": "fit"},
    "sweep-shown.data": {"kind": "sweep", "target": 2.85, "first": 2.85, "unit": "sequences"},
    "sweep-ratio.value": "1.5",
    "sweep-id.data": SWEEPS[0].id,
    "compare-view.data": {
        "tab": "tasks", "runs": [], "x": "step", "y": "noise", "project": None, "task": None, "size": "num_parameters",
        "same": False,
    },
    "planner-wanted.data": {"named": [None, None, RUNS[0].id], "view": PLAN},
    "planner-asked.data": {"view": PLAN, "scope": {**dict.fromkeys(KEPT), "kind": "run", "run_id": RUNS[0].id}},
    "beat.data": 1.0,
    "settings-sentence.id": "settings-sentence",
    "first-connection.id": "first-connection",
    "settings-me.data": {"makes_keys": True, "manages": True, "is_local": False},
    "settings-person-disable.n_clicks": 1,
    "settings-key-make.n_clicks": 1,
    "settings-key-name.value": "job",
    "settings-key-scope.value": "write",
    "settings-key-revoke.n_clicks": 1,
    "settings-key-chosen.value": "0123456789",
    "settings-role-set.n_clicks": 1,
    "settings-newcomer-add.n_clicks": 1,
    "settings-newcomer-name.value": "Grace",
    "settings-link-make.n_clicks": 1,
    "settings-person.value": "00000000-0000-4000-8000-0000000000ad",
    "settings-person-project.value": "vision",
    "settings-person-role.value": "viewer",
    "address.pathname": "/runs",
    "reproduced.data": True,
    "reproduce-asked.data": "",
    "narrow.data": False,
}  # fmt: skip
