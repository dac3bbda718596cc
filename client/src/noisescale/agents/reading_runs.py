"""Tools that read runs: list, search, one, its noise scale over the steps, several side by side."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import Field

from noisescale.agents.calls import Asked, Caller, answer, estimate, in_words, quantity, rounded
from noisescale.agents.schemas import (
    Columns,
    Comparison,
    Course,
    Decision,
    Difference,
    Event,
    Ratio,
    RunDetails,
    RunLine,
    Runs,
)
from noisescale.config import without_password
from noisescale.notices.readable import several
from noisescale.stored import words
from noisescale.stored.api import path_of
from noisescale.stored.finding import StoredRun, find_run
from noisescale_core.advice.parts.numbers import number

MAX_SETTINGS = 60
SHARE = "share"

MAX_POINTS = 200
FEW_POINTS = 40
MAX_LINES = 50
MAX_COMPARED = 10
MAX_EVENTS = 30

RunName = Annotated[str, Field(description="the run's name, its id, or the beginning of either", min_length=1)]
ProjectName = Annotated[str | None, Field(description="of this project alone")]
Limit = Annotated[int, Field(ge=1, le=MAX_LINES, description="runs at most")]
Order = Literal["newest", "most_to_save", "name", "largest_noise_scale", "lowest_loss"]
SORTS: Mapping[str, str] = {
    "newest": "-updated_at",
    "most_to_save": "-misfit",
    "name": "name",
    "largest_noise_scale": "-noise_scale",
    "lowest_loss": "loss",
}
State = Literal["running", "silent", "crashed", "finished", "failed", "diverged"]


# A stored run as tools tell it.


def unit_of(run: StoredRun) -> str:
    """What the run's batches and noise scales are counted in: images, sequences.

    Args:
        run: As the server gives it.
    """
    return several(run["example"])


def page_of(url: str, run_id: str) -> str:
    """The address of a run's page.

    Args:
        url: Of the server.
        run_id: Of the run.
    """
    return f"{without_password(url)}/runs/{run_id}"


def run_line(run: StoredRun, url: str) -> RunLine:
    """A run in a list.

    Args:
        run: As the server gives it.
        url: Of the server.
    """
    return RunLine(**_line(run, url))


def run_details(run: StoredRun, url: str) -> RunDetails:
    """One run.

    Args:
        run: As the server gives it.
        url: Of the server.
    """
    return RunDetails(
        **_line(run, url),
        optimizer=run.get("optimizer"),
        num_devices=run.get("num_devices"),
        device=run.get("device"),
        usd_per_device_hour=run.get("usd_per_device_hour"),
        example_efficiency=quantity(run.get("example_efficiency"), SHARE),
        step_efficiency=quantity(run.get("step_efficiency"), SHARE),
        last_data_at=run.get("updated_at"),
        tags=list(run.get("tags") or ()),
        remarks=run.get("remarks") or None,
        notices=[one["text"] for one in run.get("notices") or ()],
        config=dict(list((run.get("config") or {}).items())[:MAX_SETTINGS]),
    )


def run_text(run: StoredRun) -> str:
    """A run in a line: digits-b64 (vision/digits), finished at step 400 of 2,000: noise scale …; raise to 3,072.

    Args:
        run: As the server gives it.
    """
    batch = "" if run.get("global_batch") is None else f", batch {words.batch_of(run)}"
    return (
        f"{run['name']} ({run['project']}/{run['task']}), {words.state(run)}, {words.steps(run)} steps{batch}, "
        f"noise scale {words.noise_scale_of(run)}; {words.decision(run)}"
    )


def _line(run: StoredRun, url: str) -> dict[str, Any]:
    unit, decision = unit_of(run), run.get("decision") or {}
    divergence = run.get("divergence")
    last_step = run.get("last_step")
    return {
        "id": run["id"],
        "name": run["name"],
        "project": run["project"],
        "task": run["task"],
        "status": run["status"],
        "unit": unit,
        "steps_done": 0 if last_step is None else last_step + 1,
        "planned_steps": run.get("planned_steps"),
        "loss": rounded(run.get("loss")),
        "learning_rate": run.get("lr"),
        "batch_size": run.get("global_batch"),
        "noise_scale": estimate(run.get("noise_scale") or {}, unit),
        "decision": Decision(
            decision=decision.get("decision") or "insufficient_evidence",
            batch_size=decision.get("batch_size"),
            probability=rounded(decision.get("probability")),
            saving=rounded(decision.get("saving")),
            reason=decision.get("reason"),
        ),
        "diverged_at_step": divergence["step"] if divergence else None,
        "page": page_of(url, run["id"]),
    }


class ReadingRuns:
    """The tools.

    Args:
        caller: On whose behalf they ask.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.tools = (self.list_runs, self.search_runs, self.get_run, self.noise_scale, self.compare_runs)

    @in_words
    def list_runs(
        self,
        asked: Asked,
        project: ProjectName = None,
        task: Annotated[str | None, Field(description="of this task alone")] = None,
        state: Annotated[list[State] | None, Field(description="in any of these states")] = None,
        order: Annotated[
            Order, Field(description="most_to_save: batches furthest from their noise scale first, which waste most")
        ] = "newest",
        limit: Limit = 20,
    ) -> Annotated[CallToolResult, Runs]:
        """List training runs with step, loss, batch size, noise scale and what to do about the batch.

        With order most_to_save it answers which runs waste the most.
        """
        query = {"project": project, "task": task, "status": state, "sort": SORTS[order], "limit": limit}
        return self._listed(asked, query, order)

    @in_words
    def search_runs(
        self,
        asked: Asked,
        text: Annotated[
            str, Field(description="part of the name, or the first six characters of the id", min_length=1)
        ],
        project: ProjectName = None,
        limit: Limit = 20,
    ) -> Annotated[CallToolResult, Runs]:
        """Find training runs by a part of their name."""
        return self._listed(asked, {"q": text, "project": project, "limit": limit}, "newest")

    def _listed(self, asked: Asked, query: Mapping[str, object], order: str) -> CallToolResult:
        with self._caller.api(asked) as api:
            page = api.get("/runs", **query)
        runs = page["runs"]
        found = Runs(total=page["total"], order=order, runs=[run_line(run, api.url) for run in runs])
        text = "\n".join([f"{len(runs)} of {page['total']} runs, {order}:", *(run_text(run) for run in runs)])
        return answer(text if runs else "No run fits.", found)

    @in_words
    def get_run(self, asked: Asked, run: RunName) -> Annotated[CallToolResult, RunDetails]:
        """Tell where one run stands: settings, step, loss, batch, noise scale, efficiency, decision, cautions."""
        with self._caller.api(asked) as api:
            found = find_run(api, run)
        return answer(run_text(found), run_details(found, api.url))

    @in_words
    def noise_scale(
        self,
        asked: Asked,
        run: RunName,
        from_step: Annotated[int | None, Field(ge=0)] = None,
        to_step: Annotated[int | None, Field(ge=0)] = None,
        points: Annotated[
            int, Field(ge=1, le=MAX_POINTS, description="at most; longer series are sampled")
        ] = FEW_POINTS,
        kind: Annotated[
            Literal["simple", "adam", "sign", "spectral", "hessian"],
            Field(description="decisions rest on simple alone"),
        ] = "simple",
    ) -> Annotated[CallToolResult, Course]:
        """Give a run's gradient noise scale with its interval, now and over the steps, with loss and batch size."""
        with self._caller.api(asked) as api:
            found = find_run(api, run)
            query = {"from": from_step, "to": to_step, "points": points, "kind": kind}
            series = api.get(path_of("runs", found["id"], "noise-scale"), **query)
        course = _course(found, series)
        return answer(f"{run_text(found)}. {course.sampling}", course)

    @in_words
    def compare_runs(
        self,
        asked: Asked,
        runs: Annotated[list[str], Field(min_length=2, max_length=MAX_COMPARED, description="names or ids")],
    ) -> Annotated[CallToolResult, Comparison]:
        """Set runs side by side: where each stands, in which settings they differ, how their noise scales compare."""
        with self._caller.api(asked) as api:
            found = [find_run(api, run) for run in runs]
            compared = api.get("/comparison/runs", run=[run["id"] for run in found])
        ratios = [_ratio(one) for one in compared["ratios"]]
        lines = [run_line(run, api.url) for run in found]
        part = Comparison(runs=lines, ratios=ratios, differences=_differences(found))
        names = {run["id"]: run["name"] for run in found}
        said = [_ratio_text(one, names) for one in ratios]
        return answer("\n".join([*(run_text(run) for run in found), *said]), part)


def _course(run: StoredRun, series: Mapping[str, Any]) -> Course:
    points, unit = series["points"], unit_of(run)
    per_point, shown = series["steps_per_point"], len(points["step"])
    whole = "every measured step is a point" if per_point == 1 else f"sampled: each point stands for {per_point} steps"
    return Course(
        run_id=run["id"],
        kind=series["kind"],
        unit=unit,
        latest=estimate(series["latest"], unit),
        run_average=estimate(series["run_average"], unit),
        first_step=series["from"],
        last_step=series["to"],
        steps_per_point=per_point,
        sampling=f"{shown} points over steps {series['from']} to {series['to']}; {whole}, estimated over windows of "
        f"{series['window_steps']} steps.",
        points=Columns(
            step=points["step"],
            noise_scale=_column(points["value"]),
            low=_column(points["low"]),
            high=_column(points["high"]),
            loss=_column(points["loss"]),
            batch_size=_column(points["global_batch"]),
        ),
        events=[Event(step=one["step"], what=_event(one)) for one in series["events"][:MAX_EVENTS]],
    )


def _column(values: Sequence[float | None]) -> list[float | None]:
    return [rounded(value) for value in values]


def _event(found: Mapping[str, Any]) -> str:
    if found.get("from") is None or found.get("to") is None:
        return str(found["kind"])
    return f"{found['kind']} from {found['from']:g} to {found['to']:g}"


def _differences(runs: Sequence[StoredRun]) -> list[Difference]:
    """Settings in which the runs differ, those of the server first and then those of their configs."""
    told = [{"task": run["task"], "optimizer": run.get("optimizer"), "batch_size": run.get("global_batch"),
             "learning_rate": run.get("lr"), "num_devices": run.get("num_devices"), **(run.get("config") or {})}
            for run in runs]  # fmt: skip
    names = list(dict.fromkeys(name for one in told for name in one))
    return [
        Difference(setting=name, values={run["id"]: one.get(name) for run, one in zip(runs, told, strict=True)})
        for name in names
        if any(one.get(name) != told[0].get(name) for one in told[1:])
    ][:MAX_EVENTS]


def _ratio(found: Mapping[str, Any]) -> Ratio:
    mean = quantity(found["mean"], "×")
    return Ratio(run_id=found["run_id"], to_run_id=found["to_run_id"], mean=mean, num_points=len(found["x"]))


def _ratio_text(ratio: Ratio, names: Mapping[str, str]) -> str:
    pair = f"{names.get(ratio.run_id, ratio.run_id)} over {names.get(ratio.to_run_id, ratio.to_run_id)}"
    if ratio.mean is None or ratio.mean.value is None:
        return f"Noise scale of {pair}: nothing resolved at equal steps."
    mean = ratio.mean
    interval = "" if mean.low is None or mean.high is None else f" [{number(mean.low)}, {number(mean.high)}]"
    return f"Noise scale of {pair}: {number(mean.value or 0)} ×{interval} at equal steps."
