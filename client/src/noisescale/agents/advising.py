"""Tools that advise: the batch of a run, the batch within limits, the batch to begin with."""

from dataclasses import asdict
from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from noisescale.agents import advice_parts
from noisescale.agents.calls import Asked, Caller, answer, in_words
from noisescale.agents.reading_runs import RunName, page_of
from noisescale.agents.schemas_advice import Plan, Recommendation
from noisescale.ask.asking import with_query
from noisescale.stored.api import path_of
from noisescale.stored.finding import find_run
from noisescale_core.advice.language_model import PlannedModel
from noisescale_core.advice.language_model import recommend as of_language_model
from noisescale_core.advice.question import Question
from noisescale_core.errors import ConfigError

Preference = Annotated[
    float | None, Field(description="what a step is worth: 0 fewest examples (money) … 1 fewest steps (time), say 0.8")
]
ExamplesPerStep = Annotated[
    float | None, Field(description="instead of a preference: examples one would spend to save one step")
]
UsdPerHourSooner = Annotated[
    float | None, Field(description="instead of both: what it is worth that the run ends an hour sooner")
]
FixedHardware = Annotated[bool | None, Field(description="instead of all three: the devices stay as they are")]
MaxHours = Annotated[float | None, Field(description="hours that are left")]
MaxUsd = Annotated[float | None, Field(description="US dollars that are left")]
MaxSteps = Annotated[float | None, Field(description="optimizer steps that may still be taken")]
MaxExamples = Annotated[float | None, Field(description="examples that may still be used")]
PerDevice = Annotated[int | None, Field(description="largest micro-batch that fits on a device")]
Devices = Annotated[int | None, Field(description="data-parallel devices, which stay whatever the batch")]
DevicePrice = Annotated[float | None, Field(description="US dollars for a device and hour; the run's own by default")]


class Advising:
    """The tools.

    Args:
        caller: On whose behalf they ask.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.tools = (self.recommendation, self.plan_within_limits, self.recommend_before_training)

    @in_words
    def recommendation(
        self,
        asked: Asked,
        run: RunName,
        preference: Preference = None,
        examples_per_step: ExamplesPerStep = None,
        usd_per_hour_sooner: UsdPerHourSooner = None,
        fixed_hardware: FixedHardware = None,
        usd_per_device_hour: DevicePrice = None,
    ) -> Annotated[CallToolResult, Recommendation]:
        """Say which batch size a run should use now, why, how likely that is cheaper, and the worst case.

        Without a price of a step the answer assumes one and says so.
        """
        question = Question.of(
            {
                "preference": preference,
                "examples_per_step": examples_per_step,
                "usd_per_hour_sooner": usd_per_hour_sooner,
                "fixed_hardware": fixed_hardware,
                "usd_per_device_hour": usd_per_device_hour,
            }
        )
        with self._caller.api(asked) as api:
            found = find_run(api, run)
            said = api.get(with_query(path_of("runs", found["id"], "recommendation"), question))
        part = advice_parts.recommendation(said, "server", page_of(api.url, found["id"]))
        return answer(f"{found['name']}: {advice_parts.recommendation_text(part)}", part)

    @in_words
    def plan_within_limits(
        self,
        asked: Asked,
        run: Annotated[str | None, Field(description="what is left of this run's plan")] = None,
        project: Annotated[str | None, Field(description="instead of a run: of the task's next run")] = None,
        task: Annotated[str | None, Field(description="its critical batch from earlier sweeps and runs")] = None,
        max_hours: MaxHours = None,
        max_usd: MaxUsd = None,
        max_steps: MaxSteps = None,
        max_examples: MaxExamples = None,
        num_devices: Devices = None,
        examples_per_device: PerDevice = None,
        usd_per_device_hour: DevicePrice = None,
        preference: Preference = None,
        examples_per_step: ExamplesPerStep = None,
    ) -> Annotated[CallToolResult, Plan]:
        """Find the batch size within deadlines, budgets and memory, and what it takes in steps, hours and dollars.

        It names the limit that binds, and where no batch meets them, what is possible.
        """
        if (run is None) == (task is None):
            raise ConfigError("run must be given, or task with its project, and not both")
        if task is not None and project is None:
            raise ConfigError(f"project of task {task!r} is missing: give it, too")
        query = {
            "max_hours": max_hours, "max_usd": max_usd, "max_steps": max_steps, "max_examples": max_examples,
            "num_devices": num_devices, "examples_per_device": examples_per_device,
            "usd_per_device_hour": usd_per_device_hour, "preference": preference,
            "examples_per_step": examples_per_step,
        }  # fmt: skip
        with self._caller.api(asked) as api:
            if run is not None:
                about: dict[str, str | None] = {"run_id": find_run(api, run, project=project)["id"]}
            else:
                about = {"project": project, "task": task}
            part = advice_parts.plan(api.get("/tradeoff", **query, **about))
        best = (
            "No batch meets the limits."
            if part.recommended is None
            else advice_parts.row_text(part.recommended, part.unit)
        )
        now = "" if part.present is None else f"Now {advice_parts.row_text(part.present, part.unit)}"
        return answer("\n".join(line for line in (best, part.limits_text, now) if line), part)

    @in_words
    def recommend_before_training(
        self,
        asked: Asked,
        tokens: Annotated[float | None, Field(description="that a language model is to be trained on, as 20e9")] = None,
        params: Annotated[float | None, Field(description="of the model; without tokens, 20 each are assumed")] = None,
        optimizer: Annotated[str | None, Field(description="adamw, as without it; of a task any class name")] = None,
        sequence_length: Annotated[int, Field(ge=1, description="tokens of an example; 1: batches in tokens")] = 1,
        mixture_of_experts: bool = False,
        project: Annotated[str | None, Field(description="instead of tokens: of the task")] = None,
        task: Annotated[str | None, Field(description="whose earlier runs and sweeps are asked")] = None,
        preference: Preference = None,
        examples_per_step: ExamplesPerStep = None,
    ) -> Annotated[CallToolResult, Recommendation]:
        """Say with which batch size to begin a training: a language model's from its tokens, or a task's next run.

        A language model is answered from published sweeps, without any run, and without a server.
        """
        question = Question.of({"preference": preference, "examples_per_step": examples_per_step})
        if task is not None:
            if tokens is not None or params is not None:
                raise ConfigError(f"task {task!r} and tokens or params are two questions: ask one of them")
            if project is None:
                raise ConfigError(f"project of task {task!r} is missing: give it, too")
            path = with_query(
                path_of("projects", project, "tasks", task, "recommendation"), question, optimizer=optimizer
            )
            with self._caller.api(asked) as api:
                part = advice_parts.recommendation(api.get(path), "server", None)
            return answer(advice_parts.recommendation_text(part), part)
        planned = PlannedModel(
            tokens=tokens,
            params=params,
            sequence_length=sequence_length,
            optimizer=optimizer or "adamw",
            is_mixture=mixture_of_experts,
        )
        part = advice_parts.recommendation(asdict(of_language_model(planned, question)), "published", None)
        return answer(advice_parts.recommendation_text(part), part)
