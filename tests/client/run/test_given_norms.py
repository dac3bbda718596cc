"""Norms that the script measured itself: per layer, and of groups inside groups."""

import math
import sys
import time

import pytest
import torch

from client_runs import make_kept_run, terms_of, terms_of_means
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.track.recorder import Recorder
from noisescale.track.step_log import StepLog
from noisescale_core.errors import EstimationError
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.nested_groups import NestedSizes, from_nested_groups, sizes_of


def test_layers_have_their_own_norms():
    run, kept = make_kept_run()

    for _ in range(12):
        run.log_norms(
            small_batch_size=8,
            big_batch_size=64,
            small_sq_norm=5.0,
            big_sq_norm=2.0,
            layers={"blocks.0": (3.0, 1.0), "head": (2.0, 1.0)},
        )
    run.finish()

    groups = kept.groups()[-1]
    count = sum(groups.num_updates) / 2
    assert groups.names == ["blocks.0", "head"]
    assert groups.sum_trace_cov[0] / count == pytest.approx(2.0 / (1 / 8 - 1 / 64))
    assert groups.sum_grad_sq_norm[1] / count == pytest.approx((64 * 1.0 - 8 * 2.0) / 56)
    assert kept.rows()[0].sum_trace_cov == pytest.approx(3.0 / (1 / 8 - 1 / 64))


def test_other_layers_begin_a_new_record():
    run, kept = make_kept_run()

    for names in (("a", "b"), ("a", "b"), ("c",)):
        run.log_norms(
            small_batch_size=8,
            big_batch_size=64,
            small_sq_norm=5.0,
            big_sq_norm=2.0,
            layers=dict.fromkeys(names, (3.0, 1.0)),
        )
    run.finish()

    assert [(record.names, record.num_updates) for record in kept.groups()] == [(["a", "b"], [2, 2]), (["c"], [1])]


def test_a_layer_that_is_not_finite_takes_the_step_out():
    run, kept = make_kept_run()

    run.log_norms(
        small_batch_size=8, big_batch_size=64, small_sq_norm=5.0, big_sq_norm=2.0, layers={"a": (float("inf"), 1.0)}
    )

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.NONFINITE_GRADIENT)


# ---- nested groups

PROMPTS = [[2, 3], [2, 2], [1, 4]]  # three prompts of two groups of rollouts each
SIZES = sizes_of(PROMPTS)


def nested_step(seed=0):
    """Gradients of single rollouts, drawn with an effect that a prompt's rollouts share."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.ones(6, dtype=torch.float64)
    prompts = []
    for groups in PROMPTS:
        effect = 0.7 * torch.randn(6, generator=generator, dtype=torch.float64)
        prompts.append(
            [mean + effect + torch.randn(size, 6, generator=generator, dtype=torch.float64) for size in groups]
        )
    return prompts


def sums_of(prompts):
    """Σ n |g|² of prompts and of groups, and |ḡ|²."""
    of_prompts = sum(len(torch.cat(groups)) * float(torch.cat(groups).mean(0).square().sum()) for groups in prompts)
    of_groups = sum(len(group) * float(group.mean(0).square().sum()) for groups in prompts for group in groups)
    whole = torch.cat([group for groups in prompts for group in groups]).mean(0)
    return {"prompt": of_prompts, "group": of_groups}, float(whole.square().sum())


@pytest.mark.parametrize("sizes", [PROMPTS, SIZES], ids=["nested lists", "sizes of several ranks"])
def test_a_nested_step_has_the_unbiased_gradient_and_the_noise_of_each_level(sizes):
    sums, big = sums_of(nested_step())
    truth = from_nested_groups([14 * big, *sums.values()], SIZES)
    run, kept = make_kept_run()

    run.log_nested_norms(sums, big, sizes, step=3, loss=0.5, lr=0.1)

    [row] = kept.rows()
    trace_cov, grad_sq_norm = terms_of(row)
    assert grad_sq_norm == pytest.approx(truth.grad_sq_norm, rel=1e-12)
    assert trace_cov == pytest.approx(14 * (big - truth.grad_sq_norm), rel=1e-12)
    assert (row.step, row.num_micro_batches, row.global_batch, row.sum_loss, row.lr) == (3, 6, 14, 0.5, 0.1)
    [metrics] = kept.metrics()
    assert metrics.step == 3
    assert dict(metrics.values) == pytest.approx(
        {"noise/prompt": truth.group_noise[0], "noise/group": truth.unit_noise}
    )


def test_one_level_is_the_ordinary_estimate():
    generator = torch.Generator().manual_seed(1)
    groups = [torch.randn(size, 5, generator=generator, dtype=torch.float64) + 1 for size in (4, 4, 4)]
    means = [group.mean(0) for group in groups]
    big = float(torch.cat(groups).mean(0).square().sum())
    run, kept = make_kept_run()

    run.log_nested_norms({"micro_batch": sum(4 * float(mean.square().sum()) for mean in means)}, big, [4, 4, 4])

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, (4, 4, 4)), rel=1e-10)


def test_each_term_is_within_five_standard_errors_of_the_truth():
    """E N (|ḡ|² - |G|²) = V + Σ_j k_0j V_j: the noise of a rollout as it counts in such a step."""
    run, kept = make_kept_run()
    for seed in range(400):
        sums, big = sums_of(nested_step(seed))
        run.log_nested_norms(sums, big, SIZES)

    in_prompts = sum(sum(groups) ** 2 for groups in PROMPTS) / 14
    truth = {"trace_cov": 6 * 1.0 + in_prompts * 6 * 0.49, "grad_sq_norm": 6.0}
    for name, exact in truth.items():
        found = torch.tensor([getattr(row, f"sum_{name}") for row in kept.rows()], dtype=torch.float64)
        assert abs(float(found.mean()) - exact) < 5 * float(found.std()) / 400**0.5


def test_the_stream_says_that_groups_are_nested():
    run, _ = make_kept_run()
    sums, big = sums_of(nested_step())

    run.log_nested_norms(sums, big, PROMPTS)

    stream = run._recorders.main._run_record("simple").stream
    assert (stream["estimator"], stream["batch_size_source"]) == ("nested_groups", "argument")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"prompt": 1.0}, 1.0, PROMPTS), "T_0 to T_2, got 2 numbers"),
        (({"prompt": 1.0, "group": 1.0}, 1.0, [[4], [4]]), "every prompt holds one group"),
        (({"prompt": 1.0, "group": 1.0}, 1.0, [[4, 0], [4, 1]]), "positive"),
    ],
)
def test_what_cannot_be_told_apart_is_reported_and_not_raised(arguments, message, caplog):
    run, kept = make_kept_run(strict=False)

    run.log_nested_norms(*arguments)

    assert message in caplog.text
    assert kept.rows() == []


def test_norms_that_are_not_finite_are_flagged():
    run, kept = make_kept_run()

    run.log_nested_norms({"prompt": float("nan"), "group": 1.0}, 1.0, PROMPTS)

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.NONFINITE_GRADIENT)
    assert kept.metrics() == []


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ({"rollout": 9.0, "prompt": 6.0}, "must not fall from rollout to prompt, got 9 and 6: give the levels with"),
        ({"prompt": 3.0, "rollout": 6.0}, "must not fall from the whole step to prompt, got 4 and 3"),
        ({"prompt": -1.0, "rollout": 6.0}, "must not be negative, got 4 of the whole step and -1 of prompt"),
    ],
    ids=["in the wrong order", "smaller than the whole step", "negative"],
)
def test_sums_that_no_nested_gradients_have_are_refused(sums, message):
    run, _ = make_kept_run()

    with pytest.raises(EstimationError, match=message):
        run.log_nested_norms(sums, 1.0, [[1, 1], [1, 1]])


def test_sizes_with_fewer_groups_inside_than_outside_are_refused():
    run, _ = make_kept_run()
    sizes = NestedSizes(4.0, (4, 2), (4.0, 8.0), ((2.0,), ()))

    with pytest.raises(EstimationError, match="got 2 of prompt inside 4 of rollout: give the levels with the coarsest"):
        run.log_nested_norms({"rollout": 6.0, "prompt": 6.0}, 1.0, sizes)


def test_a_wall_clock_that_jumps_does_not_disturb_the_times_of_steps(monkeypatch):
    run, kept = make_kept_run(log_every=1)
    start = time.time()

    for jump in (0.0, -3600.0, 1e9):
        monkeypatch.setattr(time, "time", lambda jump=jump: start + jump)
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=5.0, big_sq_norm=2.0)

    times = [row.wall_time for row in kept.rows()]
    assert times == sorted(times)
    assert times[-1] - times[0] < 600


@pytest.mark.parametrize("num_steps", [1, 15, 16, 17, 40])
def test_whoever_looks_sees_every_step_so_far(num_steps):
    """Windows and history take sixteen steps at a time, or what there is when somebody asks."""
    run, _ = make_kept_run()
    for step in range(num_steps):
        run.log_norms(
            small_batch_size=8,
            big_batch_size=64,
            small_sq_norm=3.0,
            big_sq_norm=1.0,
            loss=float(step),
            lr=0.1 * (step + 1),
        )

    assert run.noise_scale().num_updates == num_steps
    standing = run.standing()
    assert sum(look.num_updates for look in standing.looks) == num_steps
    assert standing.losses.total == sum(range(num_steps))
    assert run._main._log.history.learning_rate == 0.1 * num_steps


STEPS = [
    *({"loss": 1 / (step + 1)} for step in range(40)),
    {},
    {"loss": math.nan},
    {"loss": math.inf},
    {"loss": 0.5, "lr": 3},
    {"loss": 0.5, "num_small": 4},
    {"loss": 0.5, "big_sq_norm": 2.5},
    {"loss": 0.5, "big_sq_norm": 1e90},
    {"loss": 0.5, "big_sq_norm": math.nan},
    {"loss": 0.5, "big_batch_size": 8},
    {"loss": 0.5, "big_batch_size": 16},
    {"loss": 0.5, "big_batch_size": 16},
    {"loss": 0.5, "step": 7},
    {"loss": 0.5, "step": 70},
    *({"loss": 0.4} for _ in range(240)),
    {"loss": 0.5, "layers": {"a": (3.0, 1.0)}},
    *({"loss": 0.4} for _ in range(3)),
    *({"loss": 0.4, "layers": {"a": (3.0, 1.0), "b": (2.0, 0.5 * number)}} for number in range(30)),
    {"loss": 0.4, "layers": {"a": (3.0, 1.0), "b": (math.inf, 1.0)}},
    {"loss": 0.4, "layers": {"a": (3.0, 1.0), "b": (2.0, -0.0)}},
    {"loss": 0.4},
    {"loss": 0.4, "layers": {}},
    *({"loss": 0.4, "layers": {"b": (3.0, number), "a": (2.0, 1)}} for number in range(30)),
    {"loss": 0.4, "layers": {"b": (3.0, 1.0), "a": (2.0, 1.0)}},
]
"""Plain steps, and among them all that is out of the ordinary."""


def logged(monkeypatch, *, is_plain, group_seconds):
    """All that is known of a run of these steps, whose clock stands still."""
    if not is_plain:
        monkeypatch.setattr(StepLog, "add_plain", lambda *_: None)
    monkeypatch.setattr(Recorder, "now", lambda _: 1e9)
    run, kept = make_kept_run(planned_steps=400, group_seconds=group_seconds)
    usual = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0, "lr": 0.1}
    log = run._main._log
    along = []
    for given in STEPS:
        run.log_norms(**usual | given)
        along.append((log.newest_flags, log.num_estimates, log.batch_in_use, log.finite.divergence))
    measured = run._main.measured()
    told = run.noise_scale(), run._main.standing(), log.finite.estimated_step, measured.history.flags
    run.finish()
    return [*kept.records], along, told


@pytest.mark.parametrize("group_seconds", [10.0, 0.0])
def test_plain_steps_take_a_shorter_way_to_the_same_records_and_the_same_answers(monkeypatch, group_seconds):
    with monkeypatch.context() as patch:
        short = logged(patch, is_plain=True, group_seconds=group_seconds)
    with monkeypatch.context() as patch:
        long = logged(patch, is_plain=False, group_seconds=group_seconds)

    assert repr(short[0]) == repr(long[0])  # of which some hold NaN
    assert short[1] == long[1]
    assert repr(short[2]) == repr(long[2])


@pytest.mark.parametrize("layers", [None, {"a": (3.0, 1.0), "b": (2.0, 0.0)}])
def test_most_steps_are_plain(monkeypatch, layers):
    run, _ = make_kept_run()
    looked_at, add = [], StepLog.add
    monkeypatch.setattr(StepLog, "add", lambda log, update: looked_at.append(update) or add(log, update))

    usual = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0, "lr": 0.1}
    for _ in range(10):
        run.log_norms(**usual, loss=0.5, layers=layers)

    assert len(looked_at) == 1  # the first one, whose size is new


def test_a_plain_step_is_on_disk_after_few_calls(tmp_path):
    run = Run(Config(mode="offline", folders=(tmp_path,)), RunDescription())
    usual = {"small_batch_size": 8, "big_batch_size": 64, "small_sq_norm": 3.0, "big_sq_norm": 1.0, "lr": 0.1}
    calls = []
    for _ in range(3):
        run.log_norms(**usual, loss=0.5)

    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        run.log_norms(**usual, loss=0.5)
    finally:
        sys.setprofile(None)
    run.finish()

    assert len(calls) <= 20, calls
