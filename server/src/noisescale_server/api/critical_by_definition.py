"""The critical batch as a paper defines it, where somebody asks for that."""

from typing import Literal

from noisescale_core.advice.parts import Interval
from noisescale_server.analysis.definitions import DEFINED_BY, CriticalBatch, Definition
from noisescale_server.api.schemas_runs import Answer
from noisescale_server.services.errors import refuse

DefinitionName = Literal["half_efficiency", "example_efficiency", "example_overhead", "perfect_scaling", "plateau"]
"""Those that follow from the trade-off of steps and examples."""


class CriticalByDefinition(Answer):
    """B_crit converted; it holds where S = S_min (1 + B_crit / B) does, for the same target."""

    definition: DefinitionName
    share: float | None
    value: float
    low: float
    high: float
    level: float
    text: str


def by_definition(found: Interval | None, name: DefinitionName, share: float | None) -> CriticalByDefinition | None:
    """The critical batch by another definition; None without one.

    Args:
        found: B_crit with its interval, in examples.
        name: The definition.
        share: The share or tolerance that it needs.

    Raises:
        InvalidInput: If the share is missing, out of place or out of range.
    """
    definition = Definition(name)
    try:
        one = CriticalBatch(1.0, Definition.HALF_EFFICIENCY, "any", "examples")
        factor = one.to(definition, share=share).value
    except ValueError as error:
        raise refuse("definition_share", str(error), share) from error
    if found is None:
        return None
    return CriticalByDefinition(
        definition=name,
        share=share,
        value=found.value * factor,
        low=found.low * factor,
        high=found.high * factor,
        level=found.level,
        text=DEFINED_BY[definition],
    )
