"""Tools that read sweeps: which there are, and what one says of the critical batch size."""

from collections.abc import Mapping
from typing import Annotated, Any

from mcp.types import CallToolResult
from pydantic import Field

from noisescale.agents.calls import Asked, Caller, answer, in_words, quantity
from noisescale.agents.schemas import Quantity, SweepFit, SweepLine, Sweeps, Target
from noisescale.stored.api import Api, path_of
from noisescale.stored.finding import MAX_LISTED, NotFound, as_id
from noisescale_core.advice.parts.numbers import number

MAX_SWEEPS = 50
LOOKED_THROUGH = 500
TRAINING_LOSS, EXAMPLES = "training loss", "examples"


class ReadingSweeps:
    """The tools.

    Args:
        caller: On whose behalf they ask.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.tools = (self.list_sweeps, self.fit_sweep)

    @in_words
    def list_sweeps(
        self,
        asked: Asked,
        project: Annotated[str | None, Field(description="of this project alone")] = None,
        task: Annotated[str | None, Field(description="of this task alone")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_SWEEPS)] = 20,
    ) -> Annotated[CallToolResult, Sweeps]:
        """List batch size sweeps: runs of one task at several batch sizes, from which the critical batch is fitted."""
        with self._caller.api(asked) as api:
            page = api.get("/sweeps", project=project, task=task, limit=limit)
        found = Sweeps(total=page["total"], sweeps=[_line(one) for one in page["sweeps"]])
        lines = [
            f"{one['name'] or one['id']} ({one['project']}/{one['task']}), {one['num_runs']} runs"
            for one in page["sweeps"]
        ]
        return answer("\n".join(lines) or "There is no sweep.", found)

    @in_words
    def fit_sweep(
        self,
        asked: Asked,
        sweep: Annotated[str, Field(description="its name or id", min_length=1)],
        targets: Annotated[list[float] | None, Field(description="instead of the sweep's own", max_length=10)] = None,
    ) -> Annotated[CallToolResult, SweepFit]:
        """Fit a sweep: critical batch size, fewest steps and fewest examples with intervals, for each target.

        Where the data do not determine them it says why, and what is still known.
        """
        with self._caller.api(asked) as api:
            found = find_sweep(api, sweep)
            fitted = api.get(path_of("sweeps", found["id"], "critical-batch"), target=targets)
        part = SweepFit(
            sweep_id=found["id"],
            name=found.get("name"),
            metric=fitted.get("metric") or TRAINING_LOSS,
            goal=fitted["goal"],
            targets=[_target(one) for one in fitted["targets"]],
        )
        lines = [_text(one) for one in part.targets]
        return answer("\n".join([found.get("name") or found["id"], *(lines or ["It has no target: give one."])]), part)


def find_sweep(api: Api, said: str) -> Mapping[str, Any]:
    """The sweep of this name or id.

    Args:
        api: Where it is stored.
        said: As a person gave it.

    Raises:
        NotFound: If no sweep is called so, or several are.
        Refused: In the server's own words.
        TransportError: Without an answer.
    """
    if (whole := as_id(said)) is not None:
        return api.get(path_of("sweeps", whole))
    listed = api.get("/sweeps", limit=LOOKED_THROUGH)["sweeps"]
    found = [one for one in listed if one["name"] == said] or [
        one for one in listed if str(one["name"] or "").lower().startswith(said.lower()) or one["id"].startswith(said)
    ]
    if len(found) == 1:
        return dict(found[0])
    names = ", ".join(f"{one['name']} ({one['id']})" for one in (found or listed)[:MAX_LISTED])
    if found:
        raise NotFound(f"{len(found)} sweeps are called {said!r}: give the id of one, {names}")
    raise NotFound(f"no sweep is called {said!r}" + (f"; there are {names}" if names else ", and there is none at all"))


def _line(found: Mapping[str, Any]) -> SweepLine:
    given = {name: found.get(name) for name in SweepLine.model_fields}
    return SweepLine(**{**given, "targets": found.get("targets") or []})


def _target(found: Mapping[str, Any]) -> Target:
    fit, refusal = found.get("fit"), found.get("refusal")
    known = fit or refusal or {}
    return Target(
        target=found["target"],
        critical_batch=quantity(known.get("critical_batch"), EXAMPLES) or Quantity(unit=EXAMPLES),
        min_steps=quantity(known.get("min_steps"), "steps"),
        min_examples=quantity(known.get("min_examples"), EXAMPLES),
        batch_sizes=[one["batch_size"] for one in found["points"]],
        steps=[one["steps"] for one in found["points"]],
        refusal=refusal["explanation"] if refusal else None,
        findings=[str(one) for one in fit["lack_of_fit"]["findings"]] if fit and fit.get("lack_of_fit") else [],
    )


def _text(found: Target) -> str:
    batch = found.critical_batch
    if batch.value is None:
        return f"At {found.target:g}: no fit{_bounds(batch)}. {found.refusal or ''}".strip()
    low = "0" if batch.low is None else number(batch.low)
    high = "no upper bound" if batch.high is None else number(batch.high)
    return f"At {found.target:g}: critical batch {number(batch.value)} {batch.unit} [{low}, {high}]"


def _bounds(batch: Quantity) -> str:
    """What is still known of a critical batch that could not be fitted."""
    said = [f"{word} {number(end)}" for word, end in (("above", batch.low), ("below", batch.high)) if end is not None]
    return f", the critical batch is {' and '.join(said)} {batch.unit}" if said else ""
