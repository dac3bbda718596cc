"""What runs can be grouped by: project, task, optimizer or a key of their configs."""

from collections.abc import Iterable

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.runs.columns import CONFIG, MAX_KEYS, WORD_LIMIT

OWN = {"project": "Project", "task": "Task", "optimizer": "Optimizer", "family": "Family", "device": "Device"}


def choices(runs: Iterable[Run], also: str | None = None) -> list[dict[str, str]]:
    """What runs can be grouped by."""
    keys = sorted({f"{CONFIG}{key}" for run in runs for key in run.config or {}})[:MAX_KEYS]
    names = dict.fromkeys([*OWN, *([also] if also else []), *keys])
    return [{"value": name, "label": f"Group: {label(name)[:WORD_LIMIT].lower()}"} for name in names]


def label(by: str) -> str:
    """In words."""
    return OWN.get(by) or by.removeprefix(CONFIG)
