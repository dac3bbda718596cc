"""Real trainings whose learning rate is far off: it is raised and lowered, and a raise that fails is taken back."""

import io

import pytest
import torch

from noisescale_lab.follow import look as look_module
from noisescale_lab.follow.books import NOT_KEPT, PUT_BACK
from noisescale_lab.follow.kept_weights import KeptWeights
from noisescale_lab.follow.rate_lines import first_share
from rate_training import NUM_STEPS, Training, make_model


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rate"), [(torch.optim.SGD, 0.002), (torch.optim.AdamW, 1e-4)])
def test_a_rate_that_is_far_too_low_is_raised_by_one_line_and_the_loss_falls_further(kind, rate):
    kept = Training(rate, kind, dry_run=True).steps(NUM_STEPS)
    followed = Training(rate, kind).steps(NUM_STEPS)

    assert followed.rate > 4 * rate
    assert sum(followed.losses[-50:]) < 0.9 * sum(kept.losses[-50:])
    assert (kept.rate, kept.follower.faults.count, followed.follower.faults.count) == (rate, 0, 0)
    assert any("too low by the path of the parameters" in sentence for sentence in kept.said)


def test_a_rate_that_is_too_high_is_lowered():
    followed = Training(4.0).steps(NUM_STEPS)

    assert followed.rate < 2.0


def test_without_a_loss_a_rate_rises_by_the_root_of_two_at_most():
    followed = Training(0.002).steps(120, is_logged=False)

    steps = [one.to_rate_factor / one.from_rate_factor for one in followed.follower.decisions]
    assert steps
    assert max(steps) <= 2**0.5 * (1 + 1e-9)
    assert not any(one.is_on_probation for one in followed.follower.decisions)


def test_without_a_plan_the_rate_stays_and_that_is_said():
    training = Training(0.002, planned_steps=None).steps(100)

    assert training.rate == 0.002
    assert "without planned_steps the learning rate is not judged" in training.follower.why


def test_the_path_of_a_warm_up_tells_nothing_until_as_many_steps_again_have_passed():
    training = Training(0.002, warm_up=60).steps(110)
    of_warm_up = training.follower.why, list(training.follower.decisions)
    training.steps(60)

    assert of_warm_up == ("nothing to change; the path of the parameters is still that of the warm-up", [])
    assert training.follower.decisions
    assert training.follower.decisions[0].step >= 2 * 56


@pytest.mark.parametrize("kind", [torch.optim.RMSprop, torch.optim.NAdam])
def test_of_an_optimizer_whose_updates_nobody_has_measured_the_rate_stays_and_that_is_said(kind):
    training = Training(0.002, kind).steps(250)

    assert training.rate == 0.002
    assert training.follower.why == (
        f"nothing to change; how updates of {kind.__name__} tell the best rate is not known: the learning rate stays"
    )


def test_before_its_path_tells_of_the_rate_a_follower_says_from_when_on_it_does():
    training = Training(1e-4, torch.optim.AdamW).steps(20)
    early = training.follower.why
    training.steps(60)

    assert (
        early
        == "nothing to change; the path of the parameters tells nothing of the learning rate before 12% of the plan"
    )
    assert training.follower.decisions
    assert "tells nothing" not in training.follower.why


def test_a_path_that_tells_nothing_late_in_the_plan_is_called_none(monkeypatch):
    training = Training(1e-4, torch.optim.AdamW).steps(100)
    monkeypatch.setattr(look_module, "octaves_from_best", lambda run: None)
    sight, plan = training.follower._sight(), training.follower._plan

    run = look_module._state(training.follower._books, sight, plan)

    assert look_module._what_is_missing(training.follower._books, run, plan) == (
        "; no path of the parameters is measured that tells of the learning rate"
    )


@pytest.mark.parametrize(
    ("optimizer", "momentum", "share"),
    [("SGD", 0.0, 0.03), ("SGD", 0.9, 0.25), ("AdamW", 0.9, 0.12), ("Muon", 0.95, 0.5), ("Lion", 0.9, None)],
)
def test_each_family_is_read_from_a_share_of_the_plan_on(optimizer, momentum, share):
    assert first_share(optimizer, momentum) == share


def raised(**arguments):
    """A training just after a raise that is on probation."""
    return Training(0.002, **arguments).to_raise_on_probation()


def test_a_raise_that_fails_puts_weights_buffers_and_states_back_bit_for_bit():
    training = raised(kind=torch.optim.AdamW)
    before = [tensor.clone() for tensor in training.model.state_dict().values()]
    moments = [state["exp_avg_sq"].clone() for state in training.optimizer.state.values()]
    raised_rate = training.rate

    while not training.follower.decisions[-1].is_undo:
        training.steps(1, factor=30.0)

    assert all(map(torch.equal, training.model.state_dict().values(), before))
    assert all(
        torch.equal(state["exp_avg_sq"], moment)
        for state, moment in zip(training.optimizer.state.values(), moments, strict=True)
    )
    undo = training.follower.decisions[-1]
    assert training.rate == pytest.approx(0.002 * undo.to_rate_factor)
    assert training.rate < raised_rate
    assert "the loss rose from" in undo.reason
    assert PUT_BACK in str(undo)
    assert training.follower._kept is None
    assert training.kept.metrics()[-1].values["follow/is_undo"] == 1


def test_a_job_that_was_killed_on_probation_goes_back_to_its_rate_alone_and_says_so():
    first = raised()
    state, weights = first.follower.state_dict(), first.model.state_dict()
    second = Training(0.002)
    second.model.load_state_dict(weights)
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    second.follower.load_state_dict(round_trip(state))
    at_resume = second.rate

    while not second.follower.decisions[-1].is_undo:
        second.steps(1, factor=30.0)

    assert second.rate < at_resume
    assert NOT_KEPT in str(second.follower.decisions[-1])


def test_the_copy_goes_when_the_probation_is_over():
    training = raised()

    while training.follower._books.memory.probation == raised_probation(training):
        training.steps(1)

    assert training.follower._kept is None or training.follower.decisions[-1].is_on_probation


def raised_probation(training):
    training.first = getattr(training, "first", training.follower._books.memory.probation)
    return training.first


def test_a_run_that_diverges_on_probation_comes_back():
    training = raised()

    while not training.follower.decisions[-1].is_undo:
        training.steps(1, factor=float("inf"))
    training.steps(30)

    assert all(torch.isfinite(tensor).all() for tensor in training.model.parameters())
    assert torch.isfinite(torch.tensor(training.losses[-1]))


def test_what_was_put_back_is_kept_for_another_time():
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    kept = KeptWeights(optimizer, model)
    for _ in range(2):
        model(torch.randn(8, 20)).sum().backward()
        optimizer.step()
        kept.put_back()

    assert all(map(torch.equal, model.state_dict().values(), make_model().state_dict().values()))
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_path_that_began_again_lately_is_no_path(monkeypatch):
    training = Training(0.002).steps(60)
    sight = training.follower._sight()
    assert look_module._path(training.follower._books, sight, training.follower._plan) is not None

    monkeypatch.setattr(look_module, "LEAST_OF_PATH", 2.0)

    assert look_module._path(training.follower._books, sight, training.follower._plan) is None


def no_room(*_):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nFor debugging")


def test_where_a_copy_does_not_fit_the_rate_rises_by_the_root_of_two_and_that_is_said_once(monkeypatch):
    monkeypatch.setattr("noisescale_lab.follow.follower.KeptWeights", no_room)

    training = Training(0.002).steps(150)

    decisions, memory = training.follower.decisions, training.follower._books.memory
    assert len(decisions) >= 2
    assert [one.to_rate_factor for one in decisions] == pytest.approx(
        [2 ** ((k + 1) / 2) for k in range(len(decisions))]
    )
    assert training.rate == pytest.approx(0.002 * decisions[-1].to_rate_factor)
    assert (memory.anchor_rate, memory.probation) == (decisions[-1].to_rate_factor, None)
    assert not any(one.is_on_probation for one in decisions)
    assert "without a copy of the weights the rate rises by 1.41 × at most" in str(decisions[0])
    reasons = [sentence for sentence in training.said if "a copy of the weights did not fit" in sentence]
    assert len(reasons) == 1
    assert reasons[0].endswith("did not fit: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert training.follower.faults.count == 0


def test_a_copy_that_fits_later_puts_the_next_raise_on_probation(monkeypatch):
    with monkeypatch.context() as tight:
        tight.setattr("noisescale_lab.follow.follower.KeptWeights", no_room)
        training = Training(0.002)
        while not training.follower.decisions:
            training.steps(1)

    training.to_raise_on_probation()

    assert training.follower._kept is not None
    assert training.follower._books.memory.probation.learning_rate == pytest.approx(2**0.5)


def test_an_old_copy_goes_before_a_new_one_is_made(monkeypatch):
    """Two at once need twice the memory, and the old one is of no use to the new raise."""
    training, at_copy = raised(), []

    def watched(optimizer, model):
        at_copy.append(training.follower._kept)
        return KeptWeights(optimizer, model)

    monkeypatch.setattr("noisescale_lab.follow.follower.KeptWeights", watched)
    while not at_copy:
        training.steps(1)

    assert at_copy == [None]


def test_a_fault_of_ours_while_weights_are_copied_is_counted_and_the_rate_rises_without_a_copy(monkeypatch):
    monkeypatch.setattr("noisescale_lab.follow.follower.KeptWeights", lambda *_: 1 / 0)

    training = Training(0.002, strict=False).steps(60)

    decision = training.follower.decisions[0]
    assert (decision.to_rate_factor, decision.is_on_probation) == (pytest.approx(2**0.5), False)
    assert training.follower.faults.count >= 1
    assert any("a copy of the weights failed by an error of ours" in sentence for sentence in training.said)


def round_trip(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)
