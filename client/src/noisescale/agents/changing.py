"""Tools that change something: they exist only where the server was started with --allow-changes."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from noisescale.agents.calls import Asked, Caller, answer, in_words
from noisescale.agents.reading_runs import RunName
from noisescale.agents.schemas import Changed
from noisescale.stored.api import path_of
from noisescale.stored.finding import as_id, find_run
from noisescale_core.errors import ConfigError


class Changing:
    """The tools; the key has to have the right, too.

    Args:
        caller: On whose behalf they change.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.tools = (self.change_run, self.create_sweep)

    @in_words
    def change_run(
        self,
        asked: Asked,
        run: RunName,
        name: Annotated[str | None, Field(description="its new name")] = None,
        tags: Annotated[list[str] | None, Field(description="all of its tags from now on")] = None,
        remarks: Annotated[str | None, Field(description="what people write about it; replaces what is there")] = None,
        archived: Annotated[bool | None, Field(description="out of the lists, with all its data")] = None,
    ) -> Annotated[CallToolResult, Changed]:
        """Rename, tag, annotate or archive a run. Nothing that was measured changes."""
        given = {"name": name, "tags": tags, "remarks": remarks, "archived": archived}
        body = {field: value for field, value in given.items() if value is not None}
        if not body:
            raise ConfigError(f"give one of {', '.join(given)}: there is nothing to change")
        with self._caller.api(asked) as api:
            found = find_run(api, run)
            changed = api.send("PATCH", path_of("runs", found["id"]), body)
        what = f"{found['name']}: {', '.join(f'{field} is {changed[field]!r}' for field in body)}"
        return answer(what, Changed(id=found["id"], what=what))

    @in_words
    def create_sweep(
        self,
        asked: Asked,
        project: Annotated[str, Field(min_length=1)],
        task: Annotated[str, Field(min_length=1)],
        run_ids: Annotated[
            list[str], Field(min_length=1, max_length=200, description="ids of stored runs of the task")
        ],
        name: Annotated[str | None, Field(description="of the sweep")] = None,
        metric: Annotated[
            str | None, Field(description="name of a logged metric; the training loss without it")
        ] = None,
        goal: Annotated[str, Field(pattern="^(min|max)$")] = "min",
        targets: Annotated[list[float] | None, Field(max_length=10, description="levels of the metric")] = None,
    ) -> Annotated[CallToolResult, Changed]:
        """Make a sweep of runs that are stored at several batch sizes, so that fit_sweep finds their critical batch."""
        ids = [as_id(one) for one in run_ids]
        if None in ids:
            raise ConfigError(f"run_ids must be whole ids, got {run_ids[ids.index(None)]!r}: list_runs gives them")
        body = {
            "project": project,
            "task": task,
            "name": name,
            "metric": metric,
            "goal": goal,
            "targets": targets or [],
        }
        with self._caller.api(asked) as api:
            made = api.send("POST", "/sweeps", {field: value for field, value in body.items() if value is not None})
            api.send("POST", path_of("sweeps", made["id"], "runs"), {"runs": [{"run_id": one} for one in ids]})
        what = f"sweep {name or made['id']} of {len(ids)} runs of {project}/{task}"
        return answer(f"Made {what}.", Changed(id=made["id"], what=what))
