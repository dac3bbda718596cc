"""Rarer ways of training on two ranks."""

import pytest
import torch
from gloo_training import measured_alone
from gloo_wide import CASES, OTHERS
from test_equal_to_one_process import TERMS, assert_equals_one_process

from client_runs import brute_force_terms, gradient_of_each, make_batch, make_model
from noisescale_core.estimators.flags import Flags

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.mark.parametrize("name", CASES)
def test_two_ranks_measure_what_one_process_measures(of_two_ranks_at_length, name):
    found = of_two_ranks_at_length[name]

    assert_equals_one_process(CASES[name], found)


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_watching_changes_not_one_bit(of_two_ranks_at_length, name):
    found = of_two_ranks_at_length[name]

    assert [rank["is_identical"] for rank in found] == [True, True]


def test_reentrant_checkpointing_in_a_static_graph_is_measured_from_the_second_step(of_two_ranks_at_length):
    name = "static graph, checkpointed by re-entering"
    alone = measured_alone(OTHERS[name])

    rows = of_two_ranks_at_length[name][0]["rows"]

    assert [row["flags"] for row in rows] == [Flags.UNMATCHED_GRADIENT, 0, 0]
    for term in TERMS:
        assert [row[term] for row in rows[1:]] == pytest.approx([row[term] for row in alone.rows[1:]], rel=1e-10)


def test_examples_of_all_ranks_are_the_small_batches(of_two_ranks_at_length):
    batches = [make_batch(3 + rank, seed=10 * rank + number) for rank in (0, 1) for number in (0, 1)]
    inputs, classes = (torch.cat(parts) for parts in zip(*batches, strict=True))
    truth = gradient_of_each(make_model().double(), inputs.double(), classes)

    (row,) = of_two_ranks_at_length["examples_of_ranks"][0]

    assert row[:2] == pytest.approx(brute_force_terms(list(truth.values()), [1] * 14), rel=1e-10)
    assert row[2:] == (14, 0)


@pytest.mark.parametrize("name", ["two_optimizers", "zero_redundancy"])
def test_other_optimizers_are_watched_alike(of_two_ranks_at_length, name):
    assert of_two_ranks_at_length[name][0] == [(0, 4)] * 3


def test_an_approximating_hook_gives_no_estimate_once_it_approximates(of_two_ranks_at_length):
    flags = of_two_ranks_at_length["an_approximating_hook"][0]

    assert flags[0] == Flags.COMPRESSED_GRADIENT
    assert flags[-1] == Flags.COMPRESSED_GRADIENT | Flags.UNMATCHED_GRADIENT
