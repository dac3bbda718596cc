"""What a plan is for: the next run of a task, the rest of a run, or numbers that the reader types."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import quote

from noisescale_dashboard.answers.common import Project, Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.planner.query import View, is_typed

MAX_RUNS = 20
"""Newest runs of the task among which unfinished ones are looked for."""

MAX_NEWEST = 10
"""Newest runs of all among which a resolved one is looked for."""
NEXT_RUN = ""
NAME_LIMIT = 60
Kind = Literal["typed", "run", "task", "nothing"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be planned instead.

    Attributes:
        projects: All projects with their tasks.
        runs: Runs of the task that have steps left, and the one that is planned.
    """

    projects: tuple[Project, ...]
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """What is planned.

    Attributes:
        kind: Numbers of the reader, the rest of a run, the next run of a task; or there is nothing yet.
        project: Of the task; None for typed numbers.
        task: None for typed numbers.
        run_id: Whose rest is planned.
        run_name: Its name.
    """

    kind: Kind
    project: str | None = None
    task: str | None = None
    run_id: str | None = None
    run_name: str | None = None

    @property
    def source(self) -> dict[str, str]:
        """What the API is asked about."""
        if self.kind == "run":
            return {"run_id": self.run_id or ""}
        return {"project": self.project or "", "task": self.task or ""} if self.kind == "task" else {}

    @property
    def title(self) -> str:
        """What it is called."""
        if self.kind == "typed":
            return "typed numbers"
        return (self.run_name if self.kind == "run" else self.task) or ""

    def as_data(self, wanted: View) -> dict[str, Any]:
        """What the browser keeps of it, with the choices that are to stand for it.

        Args:
            wanted: What the view named, by which the browser knows whether it still does.
        """
        kept = {name: getattr(self, name) for name in KEPT}
        task = None if self.task is None or self.project is None else task_value(self.project, self.task)
        return {**kept, "named": wanted["named"], "chosen": {"task": task, "run": self.run_id or NEXT_RUN}}


KEPT = ("kind", "project", "task", "run_id", "run_name")
"""Fields of a scope that the browser keeps while the address names the same."""


def unanswered(problem: ApiProblem, wanted: View) -> dict[str, Any]:
    """What the browser keeps where the API told of no scope: why, until it is asked again."""
    kept = {**dict.fromkeys(KEPT), "kind": "nothing", "problem": asdict(problem)}
    return {**kept, "named": wanted["named"], "chosen": {"task": None, "run": NEXT_RUN}}


def scope_of(data: Mapping[str, Any]) -> Scope:
    """The scope that the browser keeps.

    Args:
        data: As `Scope.as_data` gave it.

    Raises:
        ApiProblem: As it was when the scope was asked for.
    """
    if data.get("problem"):
        raise ApiProblem(**data["problem"])
    return Scope(**{name: data[name] for name in KEPT})


async def find(api: ApiClient, visitor: Mapping[str, str], view: View) -> tuple[Scope, Choices]:
    """What the address names, or the task of the newest resolved run where it names nothing; and what else there is.

    Raises:
        ApiProblem: When the API does not answer or knows no such run.
    """
    projects, run = await asyncio.gather(api.projects(visitor), _run(api, visitor, view))
    if is_typed(view):
        return Scope("typed"), Choices(projects)
    project, task = (run.project, run.task) if run is not None else (view.get("project"), view.get("task"))
    if project is None or task is None:
        newest = (await api.runs(visitor, {"sort": "-updated_at", "limit": MAX_NEWEST, "project": project})).runs
        if not newest:
            return Scope("nothing"), Choices(projects)
        first = next((one for one in newest if one.noise_scale.state == "resolved"), newest[0])
        project, task = first.project, first.task
    page = await api.runs(visitor, {"project": project, "task": task, "sort": "-updated_at", "limit": MAX_RUNS})
    unfinished = [one for one in page.runs if steps_left(one) > 0 and one.noise_scale.state == "resolved"]
    if run is None:
        return Scope("task", project, task), Choices(projects, tuple(unfinished))
    others = (one for one in unfinished if one.id != run.id)
    return Scope("run", project, task, run.id, run.name), Choices(projects, (run, *others))


async def _run(api: ApiClient, visitor: Mapping[str, str], view: View) -> Run | None:
    return await api.run(visitor, view["run"]) if view.get("run") and not is_typed(view) else None


def steps_left(run: Run) -> int:
    """Steps of its plan that are still to take; 0 without a plan."""
    return max(0, (run.planned_steps or 0) - (run.last_step if run.last_step is not None else -1) - 1)


def task_choices(projects: tuple[Project, ...]) -> list[dict[str, Any]]:
    """All tasks, grouped by project, for a choice."""
    return [
        {
            "group": project.name[:NAME_LIMIT],
            "items": [{"value": task_value(project.name, task), "label": task[:NAME_LIMIT]} for task in project.tasks],
        }
        for project in projects
        if project.tasks
    ]


def task_value(project: str, task: str) -> str:
    """Both names in one word, which the browser takes apart again."""
    return f"{quote(project, safe='')}/{quote(task, safe='')}"


def target_value(target: float | None) -> str:
    """A target as the value of a choice; the usual one for None."""
    return "" if target is None else repr(float(target))


def run_choices(runs: tuple[Run, ...]) -> list[dict[str, str]]:
    """The next run of the task, and the rest of each that is not finished."""
    rest = [{"value": one.id, "label": f"Rest of {one.name[:NAME_LIMIT]}"} for one in runs]
    return [{"value": NEXT_RUN, "label": "The next run"}, *rest]
