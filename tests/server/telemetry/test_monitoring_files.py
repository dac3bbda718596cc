"""examples/monitoring: the dashboard is what its script writes, and everything in it and in the rules is scraped."""

import importlib.util
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
import yaml

from noisescale_server.api.telemetry.families import Scrape
from noisescale_server.process.own_metrics import ProcessMetrics
from noisescale_server.services.telemetry import Snapshot
from noisescale_server.storage.telemetry import LiveRun, Waiting

FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
NAME = re.compile(r"\bnoisescale_\w+")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_dashboard", FOLDER / "make_dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def scraped_names() -> set[str]:
    """Names of all samples that a scrape can have."""
    run = LiveRun(
        uuid4(), "vision", "digits", "big", "examples", "image", "AdamW", "resolved", 100.0, 90.0, 110.0, 64.0, 0.6,
        900, datetime.now(UTC), "increase", 128, 0.9, 0.2, False,
    )  # fmt: skip
    process = ProcessMetrics()
    process._requests.labels("api", "200").inc()
    process._seconds.labels("api").observe(0.01)
    process._errors.labels("other").inc()
    found = Scrape(process, Snapshot([run], False, Waiting(0, 0), 0.01)).collect()
    return {sample.name for family in found for sample in family.samples}


def expressions(panels: list[dict[str, Any]]) -> list[str]:
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def test_the_dashboard_is_what_its_script_writes(script: ModuleType) -> None:
    assert (FOLDER / "dashboard.json").read_text() == script.text(), "python examples/monitoring/make_dashboard.py"


def test_every_query_of_the_dashboard_and_of_the_rules_is_of_something_that_is_scraped() -> None:
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    asked = expressions(dashboard["panels"]) + rules

    named = {name for expression in asked for name in NAME.findall(expression)}

    assert len(asked) >= 20
    assert named - scraped_names() == set()


def test_the_page_about_metrics_names_each_of_them_and_no_other() -> None:
    page = (FOLDER.parents[1] / "docs" / "metrics.md").read_text()
    ours = {name for name in scraped_names() if name.startswith("noisescale_") and not name.endswith("_created")}
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in ours}

    named = set(re.findall(r"`(noisescale_\w+)", page))

    assert named == known


def test_each_figure_of_a_run_has_one_label_so_that_a_limit_of_runs_bounds_all() -> None:
    run = LiveRun(
        uuid4(), "p", "t", "n", "u", None, None, None, 1.0, 1.0, 1.0, 1.0, 1.0, 1, datetime.now(UTC), "keep", 1,
        1.0, 1.0, False,
    )  # fmt: skip
    families = Scrape(ProcessMetrics(), Snapshot([run] * 50, True, Waiting(0, 0), 0.01)).collect()

    of_runs = [sample for family in families for sample in family.samples if "run" in sample.labels]

    assert len(of_runs) <= 50 * 15
    assert {frozenset(sample.labels) for sample in of_runs} == {
        frozenset({"run"}),
        frozenset({"run", "decision"}),
        frozenset({"run", "project", "task", "name", "unit", "example", "optimizer"}),
    }
