"""What a reader asks with a recommendation: the price of a step, limits, batches to predict."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from noisescale_core.advice.pace import spot_of
from noisescale_core.advice.parts import Constraints, Preference
from noisescale_core.advice.predictions import MAX_ASKED
from noisescale_core.advice.trainer_flags import Trainer
from noisescale_server.api.critical_by_definition import DefinitionName
from noisescale_server.api.deps import Step, TwentyIds
from noisescale_server.services.errors import refuse
from noisescale_server.services.run_advice import Question

LARGEST = 1e15
Money = Annotated[float | None, Field(gt=0, le=1e15)]
Hours = Annotated[float, Field(ge=0, le=1e6)]
Batch = Annotated[float, Field(gt=0, le=1e15)]


Share = Annotated[float | None, Field(ge=0.001, le=0.999, description="0 fewest examples … 1 fewest steps")]


class SeveralRecommendationsQuery(BaseModel):
    """Of which runs, and what a step is worth."""

    model_config = ConfigDict(extra="forbid")

    ids: TwentyIds
    preference: Share = None


class RecommendationQuery(BaseModel):
    """What the reader values, and at which step.

    The ends of the preference are left out: they ask for a batch of nothing or of everything.
    """

    model_config = ConfigDict(extra="forbid")

    preference: Share = None
    examples_per_step: Annotated[
        float | None, Field(ge=1e-6, le=LARGEST, description="examples one would spend to save a step")
    ] = None
    usd_per_hour_sooner: Annotated[Money, Field(description="what it is worth that the run ends an hour sooner")] = None
    usd_per_device_hour: Annotated[Money, Field(description="price of a device; the run's own by default")] = None
    fixed_hardware: Annotated[bool, Field(description="the devices stay: step times decide what a step is worth")] = (
        False
    )
    to_step: Annotated[Step | None, Field(description="as if the run stood at this step")] = None
    max_steps: Annotated[float | None, Field(gt=0, le=LARGEST, description="steps that may still be taken")] = None
    max_examples: Annotated[float | None, Field(gt=0, le=1e18, description="examples that may still be used")] = None
    max_hours: Annotated[float | None, Field(gt=0, le=1e9, description="hours that are left")] = None
    max_usd: Annotated[Money, Field(description="money that is left")] = None
    examples_per_device: Annotated[int | None, Field(ge=1, le=2**40, description="largest micro-batch that fits")] = (
        None
    )
    num_devices: Annotated[
        int | None, Field(ge=1, le=2**24, description="data-parallel devices, which stay whatever the batch")
    ] = None
    max_micro_batches: Annotated[int | None, Field(ge=1, le=2**24, description="accumulated in a step at most")] = None
    spot_price_share: Annotated[
        float | None, Field(gt=0, le=100, description="price of interruptible devices divided by that on demand")
    ] = None
    interruptions_per_device_hour: Annotated[float, Field(ge=0, le=1e3)] = 0.0
    restart_hours: Annotated[Hours, Field(description="from an interruption until training goes on")] = 0.0
    checkpoint_hours: Annotated[Hours, Field(description="between checkpoints")] = 0.0
    batch_size: Annotated[
        list[Batch], Field(max_length=MAX_ASKED, description="batches to predict; may be repeated")
    ] = []
    format: Annotated[
        Literal["json"] | Trainer, Field(description="json, or the schedule as plain text for a trainer")
    ] = "json"

    def question(self) -> Question:
        """The question in the words of the theory.

        Raises:
            InvalidInput: If a step's worth was said twice, or interruptions leave no time to work.
        """
        return Question(self._wish(), self._limits(), self.batch_size, self.usd_per_device_hour, self.to_step)

    def _wish(self) -> Preference:
        try:
            return Preference(
                self.preference, self.examples_per_step, self.usd_per_hour_sooner, fixed_hardware=self.fixed_hardware
            )
        except ValueError as error:
            said = {"preference", "examples_per_step", "usd_per_hour_sooner", "fixed_hardware"} & self.model_fields_set
            raise refuse(min(said), str(error)) from error

    def _limits(self) -> Constraints:
        given = Constraints(
            max_steps=self.max_steps,
            max_examples=self.max_examples,
            max_hours=self.max_hours,
            max_usd=self.max_usd,
            examples_per_device=self.examples_per_device,
            num_devices=self.num_devices,
            max_micro_batches=self.max_micro_batches,
            spot_price_share=self.spot_price_share,
            interruptions_per_device_hour=self.interruptions_per_device_hour,
            restart_hours=self.restart_hours,
            checkpoint_hours=self.checkpoint_hours,
        )
        try:
            spot_of(given, self.num_devices or 1)
        except ValueError as error:
            raise refuse("interruptions_per_device_hour", str(error), self.interruptions_per_device_hour) from error
        return given


class RunRecommendationQuery(RecommendationQuery):
    """What a reader asks of a run besides: the critical batch as a paper defines it."""

    definition: Annotated[
        DefinitionName | None, Field(description="also say the critical batch as a paper defines it")
    ] = None
    definition_share: Annotated[
        float | None, Field(gt=0, le=1e6, description="share or tolerance that the definition needs")
    ] = None
