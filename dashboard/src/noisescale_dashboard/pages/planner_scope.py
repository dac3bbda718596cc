"""What a plan is for: the next run of a task, the rest of a run, or numbers that the reader types."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from noisescale_dashboard.answers import Project, Run
from noisescale_dashboard.api_client import ApiClient
from noisescale_dashboard.pages.planner_query import View, is_typed

MAX_RUNS = 20
"""Newest runs of the task among which unfinished ones are looked for."""

MAX_NEWEST = 10
"""Newest runs of all among which a resolved one is looked for."""
NEXT_RUN = ""
NAME_LIMIT = 60
Kind = Literal["typed", "run", "task", "nothing"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is planned.

    Attributes:
        kind: Numbers of the reader, the rest of a run, the next run of a task; or there is nothing yet.
        project: Of the task; None for typed numbers.
        task: None for typed numbers.
        run: Whose rest is planned.
        runs: Runs of the task that have steps left.
        projects: All projects with their tasks.
    """

    kind: Kind
    project: str | None = None
    task: str | None = None
    run: Run | None = None
    runs: tuple[Run, ...] = ()
    projects: tuple[Project, ...] = ()

    @property
    def source(self) -> dict[str, str]:
        """What the API is asked about."""
        if self.kind == "run" and self.run is not None:
            return {"run_id": self.run.id}
        return {"project": self.project or "", "task": self.task or ""} if self.kind == "task" else {}

    @property
    def title(self) -> str:
        """What it is called."""
        if self.kind == "typed":
            return "typed numbers"
        if self.kind == "run" and self.run is not None:
            return self.run.name
        return self.task or ""

    def as_data(self, view: View) -> dict[str, Any]:
        """What the browser keeps of it, with the choices that are to stand for it.

        Args:
            view: With the target.
        """
        task = None if self.task is None or self.project is None else task_value(self.project, self.task)
        run = self.run.id if self.kind == "run" and self.run is not None else NEXT_RUN
        named = {"kind": self.kind, "project": self.project, "task": self.task}
        return {**named, "chosen": {"task": task, "run": run, "target": target_value(view.get("target"))}}


async def find(api: ApiClient, visitor: Mapping[str, str], view: View) -> Scope:
    """What the address names; the task of the newest resolved run where it names nothing.

    Raises:
        ApiProblem: When the API does not answer or knows no such run.
    """
    projects, run = await asyncio.gather(api.projects(visitor), _run(api, visitor, view))
    if is_typed(view):
        return Scope("typed", projects=projects)
    project, task = (run.project, run.task) if run is not None else (view.get("project"), view.get("task"))
    if project is None or task is None:
        newest = (await api.runs(visitor, {"sort": "-updated_at", "limit": MAX_NEWEST, "project": project})).runs
        if not newest:
            return Scope("nothing", projects=projects)
        first = next((one for one in newest if one.noise_scale.state == "resolved"), newest[0])
        project, task = first.project, first.task
    page = await api.runs(visitor, {"project": project, "task": task, "sort": "-updated_at", "limit": MAX_RUNS})
    unfinished = tuple(one for one in page.runs if steps_left(one) > 0 and one.noise_scale.state == "resolved")
    return Scope("task" if run is None else "run", project, task, run, unfinished, projects)


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


def run_choices(scope: Scope) -> list[dict[str, str]]:
    """The next run of the task, and the rest of each that is not finished."""
    known = {one.id: one for one in (*([scope.run] if scope.run is not None else []), *scope.runs)}
    rest = [{"value": one.id, "label": f"Rest of {one.name[:NAME_LIMIT]}"} for one in known.values()]
    return [{"value": NEXT_RUN, "label": "The next run"}, *rest]
