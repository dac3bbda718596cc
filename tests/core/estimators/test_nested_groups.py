import numpy as np
import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.heterogeneity import mean_squares
from noisescale_core.estimators.nested_groups import from_nested_groups, sizes_of
from noisescale_core.estimators.noise_scale import from_unequal_groups

GRAD_SQ_NORM = 2.5
RAGGED = [[[3, 5], [4]], [[2, 2, 6]], [[1], [7, 3], [2]]]
"""Three ranks of micro-batches of prompts, each number the rollouts of a prompt."""


def units_of(tree, path=()):
    """The path of each unit: the numbers of its groups from the top."""
    if isinstance(tree, int):
        return [path] * tree
    return [unit for number, below in enumerate(tree) for unit in units_of(below, (*path, number))]


def groups_at(units, level):
    """Numbers of the units in each group of a level."""
    return [[i for i, unit in enumerate(units) if unit[:level] == path] for path in sorted({u[:level] for u in units})]


def expected_sums(units, depth, group_noise, unit_noise):
    """E T_l from the covariance of every pair of units, without the formula under test."""
    sums = []
    for level in range(depth + 1):
        total = 0.0
        for members in groups_at(units, level):
            covariance = sum(
                sum(noise for above, noise in enumerate(group_noise, 1) if units[i][:above] == units[j][:above])
                for i in members
                for j in members
            )
            total += len(members) * GRAD_SQ_NORM + (covariance + len(members) * unit_noise) / len(members)
        sums.append(total)
    return sums


@pytest.mark.parametrize(
    ("tree", "group_noise"),
    [([4, 4, 4], []), ([3, 5, 9], []), ([[4, 4], [4, 4]], [3.0]), ([[1, 2], [6]], [3.0]), (RAGGED, [3.0, 0.7])],
)
def test_exact_expectations_give_the_noise_of_every_level(tree, group_noise):
    units = units_of(tree)
    depth = len(group_noise) + 1

    terms = from_nested_groups(expected_sums(units, depth, group_noise, 40.0), sizes_of(tree))

    assert terms.grad_sq_norm == pytest.approx(GRAD_SQ_NORM, rel=1e-12)
    assert terms.group_noise == pytest.approx(group_noise, rel=1e-12)
    assert terms.unit_noise == pytest.approx(40.0, rel=1e-12)


def test_four_levels_of_a_training_on_rollouts():
    tree = [[[[2, 3], [4]], [[2, 2]]], [[[1, 1, 5], [3, 3]]]]

    terms = from_nested_groups(expected_sums(units_of(tree), 4, [2.0, 0.5, 9.0], 30.0), sizes_of(tree))

    assert terms.group_noise == pytest.approx([2.0, 0.5, 9.0], rel=1e-12)
    assert terms.unit_noise == pytest.approx(30.0, rel=1e-12)


def test_each_term_of_a_simulation_is_unbiased():
    """Each term by itself: errors would cancel in the ratio."""
    rng = np.random.default_rng(0)
    dim, trials = 6, 20_000
    units = units_of(RAGGED)
    mean = rng.normal(size=dim)
    scales = {"group 1": 0.8, "group 2": 0.5, "unit": 2.0}
    gradients = mean + scales["unit"] * rng.normal(size=(trials, len(units), dim))
    for level in (1, 2):
        for members in groups_at(units, level):
            gradients[:, members] += scales[f"group {level}"] * rng.normal(size=(trials, 1, dim))
    sums = [
        sum(len(members) * (gradients[:, members].mean(1) ** 2).sum(1) for members in groups_at(units, level))
        for level in range(4)
    ]

    terms = from_nested_groups(sums, sizes_of(RAGGED))

    found = {
        "grad_sq_norm": (terms.grad_sq_norm, (mean**2).sum()),
        "group 1": (terms.group_noise[0], dim * 0.64),
        "group 2": (terms.group_noise[1], dim * 0.25),
        "unit": (terms.unit_noise, dim * 4.0),
    }
    for name, (values, truth) in found.items():
        standard_error = np.std(values) / np.sqrt(trials)
        assert abs(np.mean(values) - truth) < 5 * standard_error, name
        assert standard_error < 0.03 * truth, name


def test_one_level_of_groups_is_the_ordinary_estimate():
    terms = from_nested_groups([200.0, 900.0], sizes_of([3, 5, 8]))

    ordinary = from_unequal_groups(weighted_sq_norm=900 / 16, big_sq_norm=200 / 16, num_groups=3, batch_size=16)
    assert terms.as_independent == ordinary
    assert terms.unit_noise == pytest.approx(ordinary.trace_cov)
    assert terms.grad_sq_norm == pytest.approx(ordinary.grad_sq_norm)


def test_two_equal_levels_give_the_f_test_of_ranks_that_see_different_data():
    ranks, micro_batches, size = 4, 3, 8
    batch = ranks * micro_batches * size
    a1, a2, a3 = 9.0, 4.0, 2.0

    terms = from_nested_groups([batch * a3, batch * a2, batch * a1], sizes_of([[size] * micro_batches] * ranks))

    step = mean_squares(
        small_sq_norm=a1,
        rank_sq_norm=a2,
        big_sq_norm=a3,
        num_ranks=ranks,
        num_small_batches=ranks * micro_batches,
        batch_size=batch,
    )
    f = (micro_batches * size * ranks / (ranks - 1) * (a2 - a3)) / (
        size * micro_batches / (micro_batches - 1) * (a1 - a2)
    )
    assert step.between / step.within == pytest.approx(f)
    assert terms.unit_noise == pytest.approx(step.within)
    assert terms.group_noise == pytest.approx([(step.between - step.within) / (micro_batches * size)])


def test_the_sizes_of_ranks_add():
    whole = sizes_of(RAGGED)

    added = sizes_of(RAGGED[:1]) + sizes_of(RAGGED[1:2]) + sizes_of(RAGGED[2:])

    assert added == whole
    assert whole.num_units == 35
    assert whole.num_groups == (3, 6, 10)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([[4], [4]], "every rank holds one prompt"),
        ([[4, 4]], "every step holds one rank"),
    ],
)
def test_levels_that_cannot_be_told_apart_are_refused_with_the_way_out(tree, message):
    with pytest.raises(EstimationError, match=f"{message}.*leave one of the two levels out"):
        from_nested_groups([1.0, 2.0, 3.0], sizes_of(tree), levels=("rank", "prompt"))


def test_branches_of_different_depth_are_refused():
    with pytest.raises(EstimationError, match="equal depth, got 2 and 1 levels"):
        sizes_of([[4, 4], 4])


def test_a_missing_level_of_norms_is_refused():
    with pytest.raises(EstimationError, match="T_0 to T_2, got 2 numbers"):
        from_nested_groups([1.0, 2.0], sizes_of([[4, 4], [4]]))


@pytest.mark.parametrize("tree", [[], [[4], []], [4, 0]])
def test_empty_groups_are_refused(tree):
    with pytest.raises(EstimationError):
        sizes_of(tree)
