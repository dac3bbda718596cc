"""What a follower does with noise scales that the test writes."""

import io
import itertools
import math
import re

import pytest
import torch

import noisescale
from noisescale_core.errors import ConfigError
from noisescale_core.theory import limits, prices
from scripted_run import Loop, best, make_optimizer

LONG = 400


def test_the_batch_goes_to_the_root_of_price_and_noise_scale():
    loop = Loop().follow(may_shrink=True).steps(LONG, phi=4096.0)

    assert loop.batches[-1] == pytest.approx(best(64, 4096), rel=0.35)
    assert loop.follower.batch_size == loop.batches[-1]
    assert loop.follower.accumulation_steps == loop.follower.batch_size // 8


def test_a_run_that_is_right_is_left_alone():
    loop = Loop().follow().steps(LONG, phi=64.0)

    assert not loop.batches
    assert loop.rate == 0.1
    assert "batch 64 stays at noise scale 6" in loop.follower.why


def test_the_first_mode_says_what_it_would_do_and_changes_nothing():
    loop = Loop().follow(dry_run=True).steps(LONG, phi=4096.0)

    assert not loop.batches
    assert (loop.rate, loop.follower.batch_size, loop.follower.accumulation_steps) == (0.1, 64, 8)
    assert loop.follower.learning_rate_factor == 1
    assert "would set batch 64 to" in loop.said[0]
    assert loop.follower.decisions[-1].to_batch == pytest.approx(best(64, 4096), rel=0.35)


def test_a_dry_run_says_the_changes_that_acting_would_make():
    dry, acting = (Loop().follow(dry_run=dry_run).steps(LONG, phi=4096.0) for dry_run in (True, False))

    assert [decision.to_batch for decision in dry.follower.decisions] == acting.batches
    assert len(acting.batches) >= 2


@pytest.mark.parametrize(("spread", "num_steps"), [(0.05, 15), (20.0, 300)])
def test_nothing_is_done_below_a_resolved_noise_scale(spread, num_steps):
    loop = Loop(spread=spread).follow(may_shrink=True).steps(num_steps, phi=6400.0)

    assert loop.run.noise_scale().state != "resolved"
    assert not loop.follower.decisions
    assert "no change below a resolved noise scale" in loop.follower.why


def test_a_lower_bound_raises_the_batch_where_early_decisions_are_asked_for():
    loop = Loop(spread=3.0).follow(early=True, planned_steps=1000).steps(130, phi=6400.0)

    decision = loop.follower.decisions[0]
    assert decision.noise_scale_high is None
    assert decision.noise_scale == decision.noise_scale_low
    assert decision.to_batch > 64
    assert "not resolved yet: >" in decision.reason
    assert "follow/noise_scale_high" not in loop.kept.metrics()[0].values


def test_a_few_steps_shrink_a_batch_that_is_far_too_large_where_early_decisions_are_asked_for():
    loop = Loop().follow(early=True, may_shrink=True, batch_size=4096).steps(10, phi=16.0)

    assert loop.batches == [32]


def test_early_decisions_wait_for_a_price_that_is_a_preference():
    loop = Loop(spread=3.0).follow(early=True, examples_per_step=None, price=prices.from_preference(0.5))

    loop.steps(130, phi=6400.0)

    assert not loop.follower.decisions


def test_a_batch_does_not_shrink_unless_that_is_allowed():
    kept = Loop().follow().steps(LONG, phi=1.0)
    shrunk = Loop().follow(may_shrink=True).steps(LONG, phi=1.0)

    assert not kept.batches
    assert "do not shrink unless may_shrink=True" in kept.follower.why
    assert shrunk.batches[-1] == 8
    assert shrunk.rate < 0.1


def test_the_rate_does_not_ratchet_over_fifty_changes(monkeypatch):
    monkeypatch.setattr("noisescale_lab.follow.look.STEPS_BETWEEN_LOOKS", 0.0)
    loop = Loop().follow(may_shrink=True, hysteresis=1.2)

    loop.steps(3000, phi=lambda _: 16.0 if len(loop.batches) % 2 else 1024.0)

    decisions = loop.follower.decisions
    assert len(decisions) >= 50
    assert loop.rate == pytest.approx(0.1 * decisions[-1].to_rate_factor, rel=1e-9)
    assert all(0.3 < decision.to_rate_factor < 3 for decision in decisions)


def test_a_change_waits_until_the_window_holds_nothing_from_before_the_last_one():
    loop = Loop().follow(planned_steps=100).steps(LONG, phi=1e6)

    changed_at = [decision.step for decision in loop.follower.decisions]
    assert len(changed_at) >= 2
    assert all(later - earlier >= 16 for earlier, later in itertools.pairwise(changed_at))


def test_batches_are_whole_micro_batches_of_all_devices_and_within_limits():
    loop = (
        Loop()
        .follow(micro_batch_size=8, num_devices=4, largest_batch=1000, limits=[limits.data_set(num_examples=200)])
        .steps(LONG, phi=1e5)
    )

    assert loop.batches[-1] == 192
    assert loop.follower.accumulation_steps == 6
    assert "of which 192 can be run. The data set holds 200 examples" in loop.follower.decisions[-1].reason


def test_a_batch_at_its_limit_stays():
    loop = Loop().follow(largest_batch=80).steps(LONG, phi=1e6)

    assert not loop.batches
    assert "80 is too close to 64 to be worth a change. The largest batch to train with is 80." in loop.follower.why


def test_a_preference_becomes_a_number_once_the_noise_scale_is_known():
    loop = Loop().follow(examples_per_step=None, price=prices.from_preference(0.5)).steps(LONG, phi=256.0)

    assert loop.follower.decisions[0].examples_per_step == pytest.approx(256, rel=0.1)
    assert loop.batches[-1] == pytest.approx(256, rel=0.35)


def test_a_warm_up_is_left_alone():
    optimizer = make_optimizer()
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 200))
    loop = Loop(optimizer=optimizer, scheduler=warm_up).follow().steps(190, phi=4096.0)

    assert not loop.batches
    assert loop.follower.why == "the learning rate rises: a warm-up is left alone"
    assert loop.steps(100, phi=4096.0).batches


def test_a_learning_rate_far_below_its_peak_changes_nothing():
    optimizer = make_optimizer()
    drop = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.05 if step > 5 else 1.0)
    loop = Loop(optimizer=optimizer, scheduler=drop).follow().steps(LONG, phi=4096.0)

    assert not loop.batches
    assert "0.05 of its peak" in loop.follower.why


def test_every_decision_is_recorded_with_the_run_and_says_its_numbers():
    loop = Loop().follow().steps(LONG, phi=4096.0)

    decision = loop.follower.decisions[0]
    values = loop.kept.metrics()[0].values
    assert values["follow/batch_size"] == decision.to_batch
    assert values["follow/learning_rate_factor"] == decision.to_rate_factor
    assert values["follow/noise_scale_low"] < values["follow/noise_scale"] < values["follow/noise_scale_high"]
    assert "√(r φ)" in str(decision)
    assert re.search(r"noise scale \d+ examples \[\d+, \d+\], z = .*, resolved", str(decision))
    assert str(decision) in str(loop.follower)


def test_a_decision_waits_for_a_job_that_is_not_ready():
    is_ready = []
    loop = Loop().follow(may_change=lambda batch: bool(is_ready)).steps(LONG, phi=4096.0)
    waiting = list(loop.batches)

    is_ready.append(True)
    loop.steps(1, phi=4096.0)

    assert not waiting
    assert len(loop.batches) == 1
    assert loop.follower.decisions[0].step == LONG + 1


def test_an_error_of_the_loop_s_own_function_stays_outside_of_the_loop_and_changes_nothing():
    def cannot(batch):
        raise RuntimeError(f"no loader for {batch}")

    loop = Loop().follow(set_batch_size=cannot, strict=False).steps(LONG, phi=4096.0)

    assert loop.run.faults.count >= 1
    assert (loop.rate, loop.follower.batch_size, loop.follower.decisions) == (0.1, 64, [])


def test_an_error_of_ours_stays_outside_of_the_loop(monkeypatch):
    loop = Loop().follow(strict=False)
    monkeypatch.setattr("noisescale_lab.follow.follower.look", lambda *_: 1 / 0)

    loop.steps(100, phi=4096.0)

    assert loop.run.faults.count >= 1
    assert not loop.batches


def test_ranks_that_lose_each_other_wait_once_and_the_training_goes_on():
    class Lost:
        is_first = True
        num_waits = 0

        def from_first(self, value):
            self.num_waits += 1
            raise RuntimeError("timed out")

    loop = Loop().follow(strict=False)
    loop.follower._agreement = lost = Lost()

    loop.steps(100, phi=4096.0)

    assert (lost.num_waits, loop.run.faults.count, loop.follower.batch_size) == (1, 1, 64)


def test_who_sets_the_rate_by_hand_is_told_to_multiply_it():
    loop = Loop().follow()

    for _ in range(LONG):
        loop.optimizer.param_groups[0]["lr"] = 0.1
        loop.steps(1, phi=4096.0)

    assert any("something else sets it" in sentence for sentence in loop.said)


def test_who_multiplies_the_rate_by_the_factor_is_followed():
    loop = Loop().follow()

    for _ in range(LONG):
        loop.optimizer.param_groups[0]["lr"] = 0.1 * loop.follower.learning_rate_factor
        loop.steps(1, phi=4096.0)

    assert len(loop.batches) >= 2
    assert not any("something else sets it" in sentence for sentence in loop.said)
    assert loop.rate == pytest.approx(0.1 * loop.follower.decisions[-1].to_rate_factor)


def test_a_resumed_job_goes_on_as_one_that_was_not_interrupted():
    def phi(number):
        return 300.0 * 1.01 ** min(number, 500)

    whole = Loop().follow(planned_steps=1000).steps(700, phi)
    first = Loop().follow(planned_steps=1000).steps(201, phi)
    second = Loop(optimizer=first.optimizer)
    second.follow(planned_steps=1000)

    second.follower.load_state_dict(torch_round_trip(first.follower.state_dict()))
    second.run = first.run
    second.follower._run = first.run
    second.steps(499, phi)

    assert len(whole.follower.decisions) > len(first.follower.decisions) >= 1
    assert second.follower.decisions == whole.follower.decisions
    assert second.rate == whole.rate
    assert second.follower.batch_size == whole.follower.batch_size == second.batches[-1]
    assert second.follower.state_dict() == whole.follower.state_dict()


def test_a_dry_run_that_is_resumed_to_act_begins_where_the_job_is():
    dry = Loop().follow(dry_run=True).steps(LONG, phi=4096.0)
    acting = Loop().follow()

    acting.follower.load_state_dict(torch_round_trip(dry.follower.state_dict()))
    acting.steps(LONG, phi=4096.0)

    assert dry.follower.decisions
    assert acting.batches[0] <= 4 * 64
    assert acting.batches[-1] == pytest.approx(best(64, 4096), rel=0.35)


def test_betas_go_into_an_optimizer_whose_state_was_loaded():
    """PyTorch puts new groups in the place of the old ones."""
    loop = Loop(optimizer=make_optimizer(torch.optim.AdamW)).follow(also=["betas"])

    loop.optimizer.load_state_dict(loop.optimizer.state_dict())
    loop.steps(LONG, phi=65536.0)

    assert loop.optimizer.param_groups[0]["betas"][1] < 0.999


def torch_round_trip(state):
    """As a checkpoint keeps it, where only plain values are loaded."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"examples_per_step": None}, "give one of examples_per_step and price"),
        ({"price": prices.worth_examples(4)}, "give one of examples_per_step and price"),
        ({"examples_per_step": -1.0}, "examples_per_step"),
        ({"batch_size": 63}, "batch_size must be whole micro-batches"),
        ({"batch_size": 1 << 21}, "The largest batch to train with is 1,048,576"),
        ({"largest_batch": None}, "largest_batch must be named"),
        ({"also": ["beta3"]}, "also must be a list of betas, epsilon, weight_decay"),
        ({"hysteresis": 1.0}, "hysteresis must be above 1"),
    ],
)
def test_wrong_arguments_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        Loop().follow(**wrong)


def test_adam_is_told_that_its_noise_scale_may_read_low():
    loop = Loop(optimizer=make_optimizer(torch.optim.AdamW)).follow()

    assert "can read far below the critical batch" in loop.said[0]


def test_the_active_run_is_followed_where_none_is_given():
    run = noisescale.init(mode="disabled")

    follower = noisescale.follow(None, make_optimizer(), batch_size=8, examples_per_step=8)

    assert follower._run is run
    assert math.isfinite(follower.learning_rate_factor)
