"""What data-parallel ranks measure together is what one process measures on the same data, term by term."""

import pytest
import torch
from gloo_four_ranks import CASES as OF_FOUR
from gloo_training import measured_alone
from gloo_two_ranks import CASES as OF_TWO
from gloo_two_ranks import OTHERS

from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.processes

TERMS = ("sum_trace_cov", "sum_grad_sq_norm")

SIZES = ("global_batch", "num_micro_batches", "micro_batch_size", "num_updates", "examples", "flags")


def assert_equals_one_process(case, found):
    alone = measured_alone(case)
    tolerance = 1e-10 if case.dtype == torch.float64 else 1e-5
    first, *others = found
    assert [[row[name] for name in SIZES] for row in first["rows"]] == [
        [row[name] for name in SIZES] for row in alone.rows
    ]
    for row, expected in zip(first["rows"], alone.rows, strict=True):
        for term in TERMS:
            assert row[term] == pytest.approx(expected[term], rel=tolerance)
    for group, expected in zip(first["groups"], alone.groups, strict=True):
        assert group["names"] == expected["names"]
        for term in TERMS:
            assert group[term] == pytest.approx(expected[term], rel=10 * tolerance)
    assert [rank["rows"] for rank in others] == [[]] * len(others)
    assert [rank["num_faults"] for rank in found] == [0] * len(found)


@pytest.mark.parametrize("name", OF_TWO)
def test_two_ranks_measure_what_one_process_measures(of_two_ranks, name):
    found = of_two_ranks[name]

    assert_equals_one_process(OF_TWO[name], found)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_FOUR)
def test_four_ranks_measure_what_one_process_measures(of_four_ranks, name):
    found = of_four_ranks[name]

    assert_equals_one_process(OF_FOUR[name], found)


@pytest.mark.parametrize("name", [*OF_TWO, *OTHERS])
def test_watching_changes_not_one_bit_on_any_of_two_ranks(of_two_ranks, name):
    found = of_two_ranks[name]

    assert [rank["is_identical"] for rank in found] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_FOUR)
def test_watching_changes_not_one_bit_on_any_of_four_ranks(of_four_ranks, name):
    found = of_four_ranks[name]

    assert [rank["is_identical"] for rank in found] == [True] * 4


def test_a_hook_that_rounds_to_16_bits_is_measured_and_flagged(of_two_ranks):
    alone = measured_alone(OTHERS["16 bit between ranks"])

    rows = of_two_ranks["16 bit between ranks"][0]["rows"]

    assert [row["flags"] for row in rows] == [Flags.COMPRESSED_GRADIENT] * 3
    for term in TERMS:
        assert [row[term] for row in rows] == pytest.approx([row[term] for row in alone.rows], rel=3e-3)


def test_a_hook_that_sums_gives_no_estimate(of_two_ranks):
    rows = of_two_ranks["sums"][0]["rows"]

    assert [(row["flags"], row["sum_trace_cov"]) for row in rows] == [(Flags.UNMATCHED_GRADIENT, None)] * 3


def test_the_first_step_of_a_static_graph_cannot_be_seen(of_two_ranks):
    """DDP averages its gradients before anybody else may look, over the memory that we hold."""
    alone = measured_alone(OTHERS["static graph"])

    rows = of_two_ranks["static graph"][0]["rows"]

    assert [row["flags"] for row in rows] == [Flags.UNMATCHED_GRADIENT, 0, 0]
    for term in TERMS:
        assert [row[term] for row in rows[1:]] == pytest.approx([row[term] for row in alone.rows[1:]], rel=1e-10)
