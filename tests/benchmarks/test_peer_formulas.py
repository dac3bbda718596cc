"""Every formula gives B exactly where every squared norm is what it is expected to be, and shows its own quirk."""

import numpy as np
import pytest
from benchmarks.truth import peers, peers_table
from benchmarks.truth.ours import make_ours
from benchmarks.truth.step import Step, make_step

TRACE_COV, GRAD_SQ_NORM, BATCH_SIZE = 600.0, 2.0, 64
B = TRACE_COV / GRAD_SQ_NORM
GROUPS = 8
STEPS = 10


def expected_steps(count: int = STEPS, group_counts: tuple[int, ...] = (2, 8)) -> list[Step]:
    """Steps whose groups have noise of exact length in directions of their own, so that all products vanish."""
    groups = group_counts[-1]
    noise = np.sqrt(TRACE_COV * groups / BATCH_SIZE)
    steps = []
    for index in range(count):
        leaves = np.zeros((1, groups, 1 + count * groups))
        leaves[0, :, 0] = np.sqrt(GRAD_SQ_NORM)
        leaves[0, range(groups), range(1 + index * groups, 1 + (index + 1) * groups)] = noise
        steps.append(
            make_step(
                leaves,
                batch_size=BATCH_SIZE,
                per_example_sq_norm=np.array([GRAD_SQ_NORM + TRACE_COV]),
                trace_cov=np.array([TRACE_COV]),
                grad_sq_norm=np.array([GRAD_SQ_NORM]),
                group_counts=group_counts,
            )
        )
    return steps


def with_norms(small_sq_norms: list[float], sq_norm: float) -> Step:
    """A step that measured just these squared norms."""
    step = expected_steps(1, (GROUPS,))[0]
    step.sq_norms[GROUPS][:] = small_sq_norms
    step.sq_norm[:] = sq_norm
    return step


@pytest.mark.parametrize(
    "peer",
    [
        peers.KDiffusion(),
        peers.KDiffusion(2),
        peers.AdaptDL(),
        peers.AdaptDL(2),
        peers.AdaptDLDifferenced(),
        peers.AdaScale(),
        peers.AdaScale(2),
        peers.GptNeox(),
        peers.KungFu(),
        peers.MeanOfRatios(),
        peers.AllPairsOfAllExamples(),
    ],
    ids=lambda peer: peer.name,
)
def test_a_peer_gives_the_noise_scale_from_exact_expectations(peer: peers.Peer) -> None:
    for step in expected_steps():
        peer.update(step)

    assert peer.noise_scale() == pytest.approx([B], rel=1e-9)


def test_every_way_of_ours_gives_both_terms_from_exact_expectations() -> None:
    ways = make_ours((2, 8, 32))

    for step in expected_steps(group_counts=(2, 8, 32)):
        for way in ways:
            way.update(step)

    for way in ways:
        answers = way.answers()
        # fp32 unions of the unequal micro-batches
        assert answers.noise_scale == pytest.approx([B], rel=1e-5), way.name
        assert answers.trace_cov_error == pytest.approx([0], abs=1e-5 * TRACE_COV), way.name
        assert answers.grad_sq_norm_error == pytest.approx([0], abs=1e-4 * GRAD_SQ_NORM), way.name


def test_k_diffusion_shows_the_published_floors() -> None:
    rows = peers_table.k_diffusion_rows()

    assert [row["ours"] for row in rows] == pytest.approx([20, 200, 4e7], rel=0.01)


def test_fairscale_cuts_a_negative_step_where_adaptdl_keeps_it() -> None:
    fairscale, adaptdl = peers.AdaScale(), peers.AdaptDL()
    negative = with_norms([80.0] * GROUPS, 9.0)  # |G|² = (8 · 9 - 80) / 7
    positive = with_norms([80.0] * GROUPS, 12.0)

    for peer in (fairscale, adaptdl):
        for step in [positive, negative] * 200:
            peer.update(step)

    both = np.array([(8 * 12 - 80) / 7, (8 * 9 - 80) / 7])
    trace_cov = BATCH_SIZE / 7 * (80 - np.array([12, 9]))
    assert adaptdl.noise_scale() == pytest.approx([trace_cov.mean() / both.mean()], rel=0.02)
    assert fairscale.noise_scale() == pytest.approx([trace_cov.mean() / np.maximum(both, 0).mean()], rel=0.02)


def test_kungfu_sees_rank_0_alone_and_starts_from_its_first_step() -> None:
    peer = peers.KungFu()
    first = with_norms([100.0, *[1.0] * 7], 20.0)
    second = with_norms([60.0, *[999.0] * 7], 20.0)

    peer.update(first)
    peer.update(second)

    small = 0.9 * 100 + 0.1 * 60
    trace_cov = (small - 20) / (1 / 8 - 1 / 64)
    grad_sq_norm = (64 * 20 - 8 * small) / (64 - 8)
    assert peer.noise_scale() == pytest.approx([trace_cov / grad_sq_norm])


def test_gpt_neox_compares_the_last_of_five_steps_with_the_mean_of_five() -> None:
    steps = expected_steps(7)
    steps[4].sq_norm[:] = 30.0
    peer = peers.GptNeox()

    for step in steps:  # the last two wait for a full five
        peer.update(step)

    big_sq_norm = GRAD_SQ_NORM + TRACE_COV / (5 * BATCH_SIZE)
    trace_cov = (30.0 - big_sq_norm) / (1 / BATCH_SIZE - 1 / (5 * BATCH_SIZE))
    grad_sq_norm = (5 * big_sq_norm - 30.0) / 4
    assert peer.noise_scale() == pytest.approx([trace_cov / grad_sq_norm])


def test_shockwave_adds_norms_that_are_not_squared() -> None:
    peer = peers.Shockwave()

    for step in expected_steps():
        peer.update(step)

    norm, mean_norm = (np.sqrt(GRAD_SQ_NORM + TRACE_COV / (k * BATCH_SIZE)) for k in (1, 2))
    assert peer.noise_scale() == pytest.approx([2 * BATCH_SIZE * (norm - mean_norm) / (2 * mean_norm - norm)])


@pytest.mark.slow
@pytest.mark.thorough
def test_the_formulas_have_the_published_errors_within_15_percent() -> None:
    rows = {row["estimator"]: row for row in peers_table.rows_of(peers_table.PUBLISHED[0], 160, 3)}

    far = {name for name, row in rows.items() if not row["within_15_percent"]}

    assert far == {"KungFu, 8 ranks"}  # 0.14 against 0.18: benchmarks/results/truth_peers.csv
