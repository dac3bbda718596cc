"""What a follower does with noise scales that the test writes."""

import io
import math
import re

import pytest
import torch

import noisescale
from noisescale_core.errors import ConfigError
from noisescale_core.theory import limits
from scripted_run import Loop, best, make_optimizer

LONG = 400


def test_the_batch_goes_to_the_root_of_price_and_noise_scale():
    loop = Loop().follow().steps(LONG, phi=1024.0)

    assert loop.batches[-1] == pytest.approx(best(64, 1024), rel=0.35)
    assert loop.follower.batch_size == loop.batches[-1]
    assert loop.follower.accumulation_steps == loop.follower.batch_size // 8


def test_a_change_that_is_likely_but_not_sure_is_left_to_people():
    loop, odds = Loop().follow(), []

    for _ in range(LONG):
        loop.steps(1, phi=4096.0)
        odds += re.findall(r"would be cheaper with odds of (\d+)%", loop.follower.why)

    assert loop.batches == [256]
    assert 80 <= max(map(int, odds)) < 90


def test_a_run_that_is_right_is_left_alone():
    loop = Loop().follow().steps(LONG, phi=64.0)

    assert not loop.batches
    assert loop.rate == 0.1
    assert loop.follower.why.startswith("nothing to change; no batch is cheaper for sure")


def test_the_first_mode_says_what_it_would_do_and_changes_nothing():
    loop = Loop().follow(dry_run=True).steps(LONG, phi=1024.0)

    assert not loop.batches
    assert (loop.rate, loop.follower.batch_size, loop.follower.accumulation_steps) == (0.1, 64, 8)
    assert loop.follower.learning_rate_factor == 1
    assert "would set batch 64 to" in loop.said[0]
    assert loop.follower.decisions[-1].to_batch == pytest.approx(best(64, 1024), rel=0.35)


def test_a_dry_run_says_the_changes_that_acting_would_make():
    dry, acting = (Loop().follow(dry_run=dry_run).steps(LONG, phi=65536.0) for dry_run in (True, False))

    assert [decision.to_batch for decision in dry.follower.decisions] == acting.batches
    assert len(acting.batches) >= 2


def test_a_batch_does_not_shrink_unless_that_is_allowed():
    kept = Loop().follow(may_shrink=False).steps(LONG, phi=1.0)
    shrunk = Loop().follow().steps(LONG, phi=1.0)

    assert not kept.batches
    assert "batches do not shrink here" in kept.follower.why
    assert shrunk.batches[-1] == 16
    assert shrunk.rate < 0.1


@pytest.mark.slow
def test_the_rate_does_not_ratchet_over_twenty_changes(monkeypatch):
    monkeypatch.setattr("noisescale_lab.follow.look.STEPS_BETWEEN_LOOKS", 0.0)
    loop = Loop().follow()

    loop.steps(3500, phi=lambda _: 4.0 if len(loop.batches) % 2 else 8192.0)

    decisions = loop.follower.decisions
    assert len(decisions) >= 20
    assert loop.rate == pytest.approx(0.1 * decisions[-1].to_rate_factor, rel=1e-9)
    assert all(0.3 < decision.to_rate_factor < 3 for decision in decisions)


def test_batches_are_whole_micro_batches_of_all_devices_and_within_limits():
    loop = (
        Loop()
        .follow(now=64, micro_batch=8, devices=4, largest=1000, limits=[limits.data_set(num_examples=200)])
        .steps(LONG, phi=1e5)
    )

    assert loop.batches[-1] == 192
    assert loop.follower.accumulation_steps == 6
    assert "of which 192 can be run. The data set holds 200 examples" in loop.follower.decisions[-1].reason


def test_a_batch_at_its_limit_stays():
    loop = Loop().follow(largest=80).steps(LONG, phi=1e6)

    assert not loop.batches
    assert "80 is too close to 64 to be worth a change. The largest batch to train with is 80." in loop.follower.why


def test_a_preference_moves_with_the_critical_batch():
    few, many = (Loop().follow(price=None).steps(LONG, phi=phi) for phi in (8.0, 4096.0))

    assert not few.batches or few.batches[-1] < 64
    assert many.batches[-1] > 256


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
    assert values["follow/noise_scale"] == decision.noise_scale > 4096 / 2
    assert values["follow/critical_batch"] == decision.critical_batch
    assert re.search(r"batch 64 to 256, cheaper with odds of \d+% and \d+% less cost", str(decision))
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

    loop = Loop().follow(set=cannot, strict=False).steps(LONG, phi=4096.0)

    assert loop.run.faults.count >= 1
    assert (loop.rate, loop.follower.batch_size, loop.follower.decisions) == (0.1, 64, [])


def test_a_raise_that_the_loop_s_own_function_stops_is_not_on_probation_and_comes_again():
    is_ready = []

    def set_batch(batch):
        if not is_ready:
            raise RuntimeError(f"no loader for {batch}")

    loop = Loop().follow(set=set_batch, strict=False)
    while not loop.run.faults.count:
        loop.steps(1, phi=65536.0, loss=1.0)
    memory = loop.follower._books.memory
    before = loop.optimizer.param_groups[0]["params"][0].detach().clone()
    loop.steps(40, phi=65536.0, loss=9.0)
    undone = [decision for decision in loop.follower.decisions if decision.is_undo]
    is_ready.append(True)
    loop.steps(40, phi=65536.0, loss=9.0)

    assert (memory.probation, undone) == (None, [])
    assert torch.equal(loop.optimizer.param_groups[0]["params"][0], before)
    assert loop.follower.decisions[0].to_batch == 256
    assert loop.follower.decisions[0].is_on_probation


def test_an_undo_whose_batch_the_loop_cannot_set_goes_back_to_rate_and_weights_alone():
    def set_batch(batch):
        if batch == 64:
            raise RuntimeError("no loader for 64")

    loop = Loop().follow(set=set_batch, strict=False)
    while not loop.follower.decisions:
        loop.steps(1, phi=65536.0, loss=1.0)
    raised = loop.rate
    loop.steps(40, phi=65536.0, loss=9.0)
    undone = [decision for decision in loop.follower.decisions if decision.is_undo]

    assert raised > 0.1
    assert (undone[0].to_batch, undone[0].is_put_back, undone[0].to_rate_factor) == (256, True, 1.0)
    assert loop.run.faults.count == 1


def test_a_batch_that_grows_where_no_copy_fits_leaves_the_judged_rate_what_it_was(monkeypatch):
    def no_room(*_):
        raise MemoryError

    monkeypatch.setattr("noisescale_lab.follow.follower.KeptWeights", no_room)
    loop, kept = Loop().follow(), Loop().follow(may=["batch", "rate"])
    while not loop.batches:
        loop.steps(1, phi=65536.0, loss=1.0)
        kept.steps(1, phi=65536.0, loss=1.0)

    decision, memory = loop.follower.decisions[0], loop.follower._books.memory
    assert (decision.to_batch, decision.to_rate_factor) == (256, pytest.approx(2**0.5))
    assert (memory.anchor_batch, memory.anchor_rate, memory.probation) == (64, 1.0, None)
    assert memory == kept.follower._books.memory
    assert loop.batches == kept.batches
    assert loop.rate == kept.rate
    assert loop.said[0] == "a copy of the weights did not fit: MemoryError"


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
        loop.steps(1, phi=65536.0)

    assert any("something else sets it" in sentence for sentence in loop.said)


def test_who_multiplies_the_rate_by_the_factor_is_followed():
    loop = Loop().follow()

    for _ in range(LONG):
        loop.optimizer.param_groups[0]["lr"] = 0.1 * loop.follower.learning_rate_factor
        loop.steps(1, phi=65536.0)

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
    dry = Loop().follow(dry_run=True).steps(LONG, phi=1024.0)
    acting = Loop().follow()

    acting.follower.load_state_dict(torch_round_trip(dry.follower.state_dict()))
    acting.steps(LONG, phi=1024.0)

    assert dry.follower.decisions
    assert acting.batches[0] <= 4 * 64
    assert acting.batches[-1] == pytest.approx(best(64, 1024), rel=0.35)


def test_betas_go_into_an_optimizer_whose_state_was_loaded():
    """PyTorch puts new groups in the place of the old ones."""
    loop = Loop(optimizer=make_optimizer(torch.optim.AdamW)).follow(may=["batch", "betas"])

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
        ({"price": -1.0}, "price: "),
        ({"now": 63}, "batches.now must be whole micro-batches"),
        ({"now": 1 << 21}, "The largest batch to train with is 1,048,576"),
        ({"multiple_of": 12}, "batches.multiple_of must be whole micro-batches of all devices, got 12"),
        ({"largest": None}, "batches.largest must be named"),
        ({"may": ["beta3"]}, "may must be a list of batch, rate, undo, betas, epsilon, weight_decay"),
        ({"may": "batch"}, "may must be a list"),
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

    follower = noisescale.follow(None, make_optimizer())

    assert follower._run is run
    assert math.isfinite(follower.learning_rate_factor)
