"""|G|² and the noise of every level of nested groups: rank, micro-batch, prompt, rollout; any depth, unequal sizes.

Groups of level 1 hold groups of level 2, and so on down to the finest groups measured, level L; level 0 is the whole
step. A group v of n_v units has the mean gradient g_v, and T_l = Σ n_v |g_v|² over the groups of level l is all that is
measured. Units of one group may share a part of their gradient (a prompt, a rank's own data): a random effect for each
group of levels 1 to L - 1, of covariance trace V_l. What is left is the noise of single units, V.

    E T_l = N |G|² + Σ_j k_lj V_j + c_l V,    k_lj = N for j ≤ l,  Σ_v Σ_{w in v} n_w² / n_v for j > l,

v over the groups of level l, w over those of level j, c_l groups at level l. The finest groups have no effect of their
own: it could not be told from their units' noise. `docs/estimators.md` derives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.noise_scale import Terms, from_unequal_groups

Tree = float | Sequence["Tree"]
"""Sizes of the finest groups, nested as the groups are: [[4, 4], [4, 3]] are two ranks of two micro-batches."""

SMALLEST_SHARE = 1e-9
"""Of N: a coefficient below that is rounding, and its level cannot be told from the next."""


@dataclass(frozen=True, slots=True)
class NestedSizes:
    """What the expectations need to know of the sizes; `+` joins the groups of two ranks into one step.

    Attributes:
        num_units: N.
        num_groups: c_1 … c_L, groups at each level.
        sum_sq_sizes: Σ n_w² at levels 1 to L.
        sum_sq_shares: At [l - 1][j - l - 1] stands k_lj = Σ_v Σ_{w in v} n_w² / n_v, for 1 ≤ l < j ≤ L.
    """

    num_units: float
    num_groups: tuple[int, ...]
    sum_sq_sizes: tuple[float, ...]
    sum_sq_shares: tuple[tuple[float, ...], ...]

    @property
    def depth(self) -> int:
        """L, levels of groups below the whole step."""
        return len(self.num_groups)

    def count(self, level: int) -> int:
        """c_l; 1 at level 0."""
        return self.num_groups[level - 1] if level else 1

    def coefficient(self, level: int, effect: int) -> float:
        """k_lj, how much of V_j lies in T_l."""
        if effect <= level:
            return self.num_units
        if level == 0:
            return self.sum_sq_sizes[effect - 1] / self.num_units
        return self.sum_sq_shares[level - 1][effect - level - 1]

    def __add__(self, other: "NestedSizes") -> "NestedSizes":
        if self.depth != other.depth:
            raise EstimationError(
                f"ranks must measure groups of equal depth, got {self.depth} and {other.depth} levels: "
                "leave out levels that not all ranks have"
            )
        return NestedSizes(
            self.num_units + other.num_units,
            tuple(a + b for a, b in zip(self.num_groups, other.num_groups, strict=True)),
            _plus(self.sum_sq_sizes, other.sum_sq_sizes),
            tuple(_plus(a, b) for a, b in zip(self.sum_sq_shares, other.sum_sq_shares, strict=True)),
        )


def sizes_of(groups: Sequence[Tree]) -> NestedSizes:
    """The sizes of nested groups: one entry a group of level 1, each a sequence of its own groups down to numbers.

    Raises:
        EstimationError: If a group is empty, a size is not positive, or branches differ in depth.
    """
    if not groups:
        raise EstimationError("groups must not be empty: a step has at least one group")
    total = _branch(groups[0])
    for group in groups[1:]:
        total = total + _branch(group)
    return total


def _branch(group: Tree) -> NestedSizes:
    """A group of level 1 by itself."""
    if not isinstance(group, Sequence):
        if not group > 0:
            raise EstimationError(f"sizes of groups must be positive, got {group}: leave empty groups out")
        return NestedSizes(float(group), (1,), (float(group) ** 2,), ((),))
    below = sizes_of(group)
    size = below.num_units
    shares = tuple(sum_sq / size for sum_sq in below.sum_sq_sizes)
    return NestedSizes(size, (1, *below.num_groups), (size * size, *below.sum_sq_sizes), (shares, *below.sum_sq_shares))


def _plus(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class NestedTerms:
    """Unbiased estimates of one step; each may come out negative.

    Attributes:
        grad_sq_norm: |G|², in squared gradient.
        group_noise: V_1 … V_{L-1}: covariance traces of what the units of one group share, in squared gradient.
        unit_noise: V, trace of the covariance of one unit's gradient inside its group, in squared gradient × units.
        as_independent: The terms if all units were independent, from the finest groups alone: the ordinary estimate.
    """

    grad_sq_norm: float
    group_noise: tuple[float, ...]
    unit_noise: float
    as_independent: Terms


def from_nested_groups(sum_sq_norms: Sequence[float], sizes: NestedSizes, *, levels: Sequence[str] = ()) -> NestedTerms:
    """Terms from the squared norms at every level of nested groups.

    From fine to coarse, T_l - T_{l-1} holds one noise that the finer levels have not given yet; T_0 gives |G|².
    One level of groups is `from_unequal_groups`; two equal ones give the F-test's mean squares (`heterogeneity`).

    Args:
        sum_sq_norms: T_0 … T_L; T_0 = N |ḡ|² of the whole step, the others add over ranks.
        sizes: Of the groups, by `sizes_of` or added over ranks.
        levels: What levels 1 to L are called, for messages: ("rank", "micro_batch").

    Raises:
        EstimationError: If the number of levels differs, or a level cannot be told from the one above it.

    Source: expected mean squares of the unbalanced nested random-effects model (Searle, Casella & McCulloch 1992,
    "Variance components", chapter 3), for squared norms in place of squares.
    """
    depth = sizes.depth
    if len(sum_sq_norms) != depth + 1:
        raise EstimationError(
            f"sum_sq_norms must hold T_0 to T_{depth}, got {len(sum_sq_norms)} numbers: one a level and the whole step"
        )
    names = tuple(levels) if len(levels) == depth else tuple(f"level {level}" for level in range(1, depth + 1))
    check_identifiable(sizes, names)
    steps = [fine - coarse for coarse, fine in pairwise(sum_sq_norms)]
    unit_noise = steps[depth - 1] / (sizes.count(depth) - sizes.count(depth - 1))
    noise = [0.0] * depth  # of levels 1 … L - 1, at their own index
    for level in range(depth - 1, 0, -1):
        rest = steps[level - 1] - (sizes.count(level) - sizes.count(level - 1)) * unit_noise
        rest -= sum(_gain(sizes, level, finer) * noise[finer] for finer in range(level + 1, depth))
        noise[level] = rest / _gain(sizes, level, level)
    of_groups = sum(sizes.coefficient(0, level) * noise[level] for level in range(1, depth))
    return NestedTerms(
        grad_sq_norm=(sum_sq_norms[0] - unit_noise - of_groups) / sizes.num_units,
        group_noise=tuple(noise[1:]),
        unit_noise=unit_noise,
        as_independent=from_unequal_groups(
            weighted_sq_norm=sum_sq_norms[depth] / sizes.num_units,
            big_sq_norm=sum_sq_norms[0] / sizes.num_units,
            num_groups=sizes.count(depth),
            batch_size=sizes.num_units,
        ),
    )


def check_identifiable(sizes: NestedSizes, levels: Sequence[str]) -> None:
    """Refuse groups whose levels cannot be told apart.

    The noise of a level shows only where some group of the level above holds two of it.

    Raises:
        EstimationError: With the level, and what to do; also where a level has fewer groups than the one above.
    """
    for level in range(1, sizes.depth + 1):
        if sizes.count(level) < sizes.count(level - 1):
            raise EstimationError(
                f"groups must hold groups, got {sizes.count(level)} of {levels[level - 1]} inside "
                f"{sizes.count(level - 1)} of {levels[level - 2]}: give the levels with the coarsest first"
            )
        if level == sizes.depth:
            is_shown = sizes.count(level) > sizes.count(level - 1)
        else:
            is_shown = _gain(sizes, level, level) > SMALLEST_SHARE * sizes.num_units
        if not is_shown:
            above = levels[level - 2] if level > 1 else "step"
            raise EstimationError(
                f"every {above} holds one {levels[level - 1]}, so their noise cannot be told apart: "
                f"put two into at least one {above}, or leave one of the two levels out"
            )


def _gain(sizes: NestedSizes, level: int, effect: int) -> float:
    """How much more of V_j lies in T_l than in T_{l-1}."""
    return sizes.coefficient(level, effect) - sizes.coefficient(level - 1, effect)
