"""Layers with one of the two terms of the noise scale in its place, so that the same figures rank and map them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.answers.common import Estimate, Numbers
from noisescale_dashboard.answers.series import Group
from noisescale_dashboard.figures.parts.theme import LIGHT

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class LayerQuantity:
    """What is shown of layers.

    Attributes:
        name: In hover text and table.
        unit: What it is counted in; None: what an example is.
        color: Of its dots.
    """

    name: str
    unit: str | None
    color: str


NOISE_SCALE: Final = LayerQuantity("noise scale", None, LIGHT.noise)
QUANTITIES: Final[Mapping[str, LayerQuantity]] = MappingProxyType(
    {
        "noise": NOISE_SCALE,
        "trace_cov": LayerQuantity("tr Σ", "squared gradient", LIGHT.text_1),
        "grad_sq_norm": LayerQuantity("|G|²", "squared gradient", LIGHT.text_3),
    }
)
"""By the word in the address."""


def of_term(groups: Sequence[Group], term: str) -> list[Group]:
    """The layers with `trace_cov` or `grad_sq_norm` where their noise scale was, 95 % by its standard error.

    An estimate that is not above zero is not resolved: a logarithmic axis has no place for it.
    """
    return [_of_term(group, term) for group in groups] if term != "noise" else list(groups)


def _of_term(group: Group, term: str) -> Group:
    values, errors = getattr(group.series, term), getattr(group.series, f"{term}_se")
    ends = [_ends(value, error) for value, error in zip(values, errors, strict=True)]
    value, low, high = _ends(getattr(group, term), getattr(group, f"{term}_se"))
    series = replace(
        group.series,
        value=_column(ends, 0),
        low=_column(ends, 1),
        high=_column(ends, 2),
        state=tuple("unresolved" if one[0] is None else "resolved" for one in ends),
        step=group.series.step if ends else (),
    )
    state = "unresolved" if value is None else "resolved"
    return replace(group, series=series, estimate=Estimate(state=state, value=value, low=low, high=high))


def _column(ends: Sequence[tuple[float | None, ...]], place: int) -> Numbers:
    return tuple(one[place] for one in ends)


def _ends(value: float | None, error: float | None) -> tuple[float | None, float | None, float | None]:
    if value is None or value <= 0:
        return None, None, None
    reach = NORMAL_95 * error if error is not None else None
    return value, None if reach is None else value - reach, None if reach is None else value + reach
