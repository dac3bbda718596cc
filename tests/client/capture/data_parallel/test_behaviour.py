"""Nobody waits, nothing is left behind, and what cannot be measured is said."""

import math

import pytest
import torch
from gloo_training import Case, gradients_of

from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.heterogeneity import mean_squares

pytestmark = pytest.mark.processes


def test_a_rank_never_waits_for_one_that_comes_late(of_two_ranks):
    """Rank 1 sends only after rank 0 has gone on: a rank that waited would never get there."""
    was_there, values, num_lost = of_two_ranks["nobody_waits_for_a_late_rank"][0]

    assert not was_there
    assert (values, num_lost) == ([3.0, 10.0], 0)


def test_a_sum_over_different_steps_is_lost_alone(of_two_ranks):
    for values, num_lost in of_two_ranks["a_sum_of_different_steps_is_lost"]:
        assert values == [[2.0, 2.0], None, [2.0, 2.0]]
        assert num_lost == 1


def test_a_sum_that_others_never_send_is_given_up(of_two_ranks):
    found = of_two_ranks["a_sum_that_others_never_send_is_given_up"]

    assert found == [[True, 1], [False, 0]]


def test_no_thread_of_gloo_frees_a_vector_while_the_interpreter_ends(of_two_ranks):
    """It would need Python's lock for that; so we hold each sum longer than its thread does."""
    assert of_two_ranks["sums_are_held_after_they_have_arrived"] == [[True] * 3] * 2


def test_ranks_agree_on_the_mean_of_a_number(of_two_ranks):
    assert of_two_ranks["ranks_agree_on_a_number"] == [5.0, 5.0]


def test_a_rank_without_watch_is_named_while_the_others_wait_and_when_they_give_up(of_two_ranks):
    said, message = of_two_ranks["a_rank_that_does_not_come_is_named"][0]

    assert [sentence.partition(" and ")[0] for sentence in said] == ["watch() has waited 0.1 s for rank 1"]
    assert "1 of 2 ranks" in message
    assert "not on rank 1: call init() and watch() on every rank" in message


def test_ranks_that_watch_different_models_are_told(of_two_ranks):
    messages = of_two_ranks["ranks_that_watch_different_things_are_told"]

    assert [message.partition(":")[0] for message in messages] == [
        "rank 0 watches 3 parameters, rank 1 4 parameters",
        "rank 1 watches 4 parameters, rank 0 3 parameters",
    ]


@pytest.mark.parametrize("name", ["ddp", "ddp in buckets", "fsdp"])
def test_noise_between_ranks_and_inside_them_is_that_of_their_gradients(of_two_ranks, name):
    sizes = [[5, 2], [3, 3]]
    sums_of_rank = [gradients_of(Case(sizes), rank) for rank in (0, 1)]  # Σ over examples, for each micro-batch
    of_ranks = [sum(gradients) for gradients in sums_of_rank]
    n = sum(sum(of_rank) for of_rank in sizes)
    expected = mean_squares(
        small_sq_norm=sum(
            float(g.square().sum()) / size
            for of_rank, gradients in zip(sizes, sums_of_rank, strict=True)
            for size, g in zip(of_rank, gradients, strict=True)
        )
        / n,
        rank_sq_norm=sum(float(g.square().sum()) / sum(s) for s, g in zip(sizes, of_ranks, strict=True)) / n,
        big_sq_norm=float(sum(of_ranks).square().sum()) / n**2,
        num_ranks=2,
        num_small_batches=4,
        batch_size=n,
    )

    num_steps, between, within = of_two_ranks["mean_squares_of_ranks"][0][name]

    assert num_steps == 1
    assert (between, within) == pytest.approx((expected.between, expected.within), rel=1e-10)


def test_a_rank_with_other_data_is_noticed_and_ranks_with_the_same_are_not(of_two_ranks):
    flags = of_two_ranks["shifted_data"][0]

    assert set(flags["same"]) == {0}
    assert flags["shifted"][-1] == Flags.HETEROGENEOUS_RANKS


def test_ranks_with_the_same_examples_are_called_a_bug(of_two_ranks):
    assert of_two_ranks["duplicated_ranks"][0] == [Flags.DUPLICATED_SMALL_BATCHES] * 3


def test_ranks_that_go_through_the_same_micro_batches_are_flagged_within_sixteen_steps(of_two_ranks):
    flags = of_two_ranks["repeated_ranks"][0]

    assert flags[0] == 0
    assert flags[16:] == [Flags.REPEATED_RANKS] * len(flags[16:])


@pytest.mark.parametrize("name", ["ddp", "ddp in buckets", "fsdp", "fsdp by rank"])
def test_unwatching_leaves_no_hook_and_everything_in_its_place(of_two_ranks, name):
    for num_left, had_hooks, is_as_before in (rank[name] for rank in of_two_ranks["unwatching_leaves_no_hook"]):
        assert had_hooks
        assert num_left == 0
        assert is_as_before


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_the_path_of_the_updates_is_that_of_the_whole_parameters(of_two_ranks, name):
    """The first rank of DistributedDataParallel has all of them; of shards every rank knows the sum."""
    paths = [rank[name] for rank in of_two_ranks["paths_of_the_updates"]]

    known = [(path, total, distance) for path, total, distance, *_ in paths if path is not None]
    assert len(known) == (1 if name == "ddp" else 2)
    for path, total, distance in known:
        assert path.num_updates == 8
        assert path.sum_sq_norm == pytest.approx(total, rel=1e-4)
        assert path.sq_distance == pytest.approx(distance, rel=1e-4)
    assert [num_faults for *_, num_faults in paths] == [0, 0]


def test_plain_steps_over_ranks_promise_the_rate_times_the_squared_gradient_and_shards_are_not_asked(of_two_ranks):
    """Each rank is a small batch, and the first one knows the sums over all."""
    first, second = of_two_ranks["paths_of_the_updates"]
    path, _, _, expected, _ = first["ddp"]

    assert path.promised.num_updates == 8
    assert path.promised.total == pytest.approx(expected)
    assert second["ddp"][0] is None
    assert [rank["fsdp"][0].promised for rank in (first, second)] == [None, None]


def test_nothing_is_measured_inside_join_and_nobody_hangs(of_two_ranks):
    first, second = of_two_ranks["uneven_inputs"]

    unmeasured = Flags.ONE_SMALL_BATCH | Flags.BATCH_SIZE_UNKNOWN | Flags.UNMATCHED_GRADIENT
    assert first == [[0, unmeasured, unmeasured], 0, True]
    assert second == [[], 0, True]


def test_ranks_of_two_sizes_averaged_as_they_are_are_computed_so_once_it_shows(of_two_ranks):
    ((first, last), truth), _ = of_two_ranks["ranks_of_two_sizes"]

    assert first[2] == Flags.UNEQUAL_MICRO_BATCHES
    assert last[:2] == pytest.approx(truth, rel=1e-9)
    assert last[2] == Flags.UNEQUAL_MICRO_BATCHES | Flags.WEIGHTING_MISMATCH


def test_a_watch_after_a_forward_still_finds_the_sharded_parameters(of_two_ranks):
    assert of_two_ranks["a_watch_after_a_forward_sees_the_shards"][0] == [(0, 4)]


def test_the_model_inside_a_wrapper_counts_as_the_wrapper(of_two_ranks):
    assert of_two_ranks["the_wrapped_model_is_recognised"][0] == [[0], [4]]


def test_a_model_without_wrapper_is_measured_alone_and_that_is_said(of_two_ranks):
    for flags, num_micro_batches, notes in of_two_ranks["a_plain_model_is_measured_alone"]:
        assert (flags, num_micro_batches) == ([0], [2])
        assert notes[0].startswith("this process of 2 is measured alone")


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("FSDP1", "use fully_shard (FSDP2)"),
        ("DataParallel", "use DistributedDataParallel"),
        ("tensor parallel", "log_norms()"),
        ("partly sharded", "shard the root too"),
        ("ranks of one", "needs a model in DistributedDataParallel"),
        ("kinds", "in one process only so far: leave them out"),
        ("examples of shards", "leave it out with FSDP"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_way_out(of_two_ranks, name, way_out):
    messages = [rank[name] for rank in of_two_ranks["refusals"]]

    assert all(way_out in message for message in messages)


def test_a_fault_of_one_rank_costs_that_step_and_no_other(of_two_ranks):
    (flags, is_missing, num_faults), (_, _, num_faults_of_second) = of_two_ranks["a_fault_of_one_rank_costs_one_step"]

    assert is_missing == [False, True, False]
    assert bool(flags[1] & Flags.UNMATCHED_GRADIENT)
    assert (num_faults, num_faults_of_second) == (0, 1)


def test_gradients_that_are_never_averaged_give_no_estimate(of_two_ranks):
    (flags,) = of_two_ranks["gradients_that_are_never_averaged"][0]

    assert flags & Flags.UNMATCHED_GRADIENT


def test_what_is_ignored_and_stays_in_the_average_gives_no_estimate(of_two_ranks):
    assert of_two_ranks["ignored_backwards"][0] == [Flags.UNMATCHED_GRADIENT, 0]


def test_a_loss_scaler_leaves_no_trace(of_two_ranks):
    terms = of_two_ranks["a_loss_scaler"][0]

    assert len(terms["plain"]) == 4
    assert terms["scaled"] == pytest.approx(terms["plain"], rel=1e-10)
    assert terms["unscaled"] == pytest.approx(terms["plain"], rel=1e-10)


def test_every_second_step_is_measured(of_two_ranks):
    flags, num_updates = of_two_ranks["every_second_step"][0]

    assert (flags, num_updates) == ([0, 0, 0], [1, 1, 1])


def test_ranks_with_different_costs_agree_on_the_steps_to_measure(of_two_ranks):
    first, second = of_two_ranks["a_budget_is_agreed_upon"]

    assert first[:2] == second[:2]
    assert first[0] == math.ceil((first[2] + second[2]) / 2) > 1
    assert first[2] != second[2]
    assert first[3] == 0


def test_sizes_that_only_the_device_knows_count_like_others(of_two_ranks):
    known, late = of_two_ranks["sizes_on_the_device"][0]

    assert late == pytest.approx(known, rel=1e-12)


def test_clipping_by_our_norm_would_drive_ranks_apart_so_it_is_torchs_own(of_two_ranks):
    first, second = of_two_ranks["clipping_keeps_ranks_together"]

    assert torch.equal(first, second)


def test_gradients_in_16_bit_are_measured_as_they_are(of_two_ranks):
    measured, expected = of_two_ranks["sixteen_bit_leaves"][0]

    assert measured[0] == pytest.approx(expected, rel=1e-5)


def test_a_rank_that_does_not_log_sends_its_reader_to_the_first(of_two_ranks):
    first, second = of_two_ranks["only_the_first_rank_logs"]

    # nobody waits, so the sums of the newest steps may still be on their way
    assert first.startswith("not resolved yet: ")
    assert "ask there" not in first
    assert second == "not resolved yet: rank 0 has the numbers: ask there"


def test_gradients_that_an_unknown_scaler_has_unscaled_are_flagged_on_the_rank_that_sends(of_two_ranks):
    assert of_two_ranks["an_unknown_scaler_unscales"][0] == [Flags.UNMATCHED_GRADIENT] * 3
