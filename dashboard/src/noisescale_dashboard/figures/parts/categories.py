"""Colours of what is compared: units, and runs by their slot. Roles keep theirs, so a run is never blue or orange."""

from collections.abc import Iterable

from noisescale_dashboard.figures.parts.theme import LIGHT

UNITS = ("images", "tokens", "observations")
"""These come first, so that a unit has the same colour whatever stands beside it."""
RUN_COLORS = (*LIGHT.categories[3:], LIGHT.text_1)
"""One a slot; the first three categories are the roles' colours."""
OTHER = LIGHT.text_3


def colors_of_units(units: Iterable[str]) -> dict[str, str]:
    """The colour of each unit, those that have one in their order; grey where the colours are used up."""
    present = sorted(set(units), key=lambda unit: (UNITS.index(unit) if unit in UNITS else len(UNITS), unit))
    known = {unit: LIGHT.categories[UNITS.index(unit)] for unit in present if unit in UNITS}
    left = iter(LIGHT.categories[len(UNITS) :])
    return {unit: known.get(unit) or next(left, OTHER) for unit in present}


def color_of_slot(slot: int | None) -> str:
    """The colour of a run in this slot, grey for one that has none."""
    return OTHER if slot is None else RUN_COLORS[slot]
