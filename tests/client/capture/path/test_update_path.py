"""Updates as they are, whatever the optimizer; distances from the start; nothing left behind, nothing disturbed."""

import functools
import itertools

import pytest
import torch
from torch import nn

from noisescale.capture.data_parallel.job import OneProcess
from noisescale.capture.hooks.hooks import guard
from noisescale.capture.path import update_path
from noisescale.capture.path.look_plan import (
    GROWTH,
    LONGEST,
    LONGEST_OF_CHEAP_STEPS,
    SHARE,
    LookPlan,
    share_of_looks,
)
from noisescale.capture.path.optimizer_facts import momentum_of
from noisescale.capture.path.update_path import UpdatePath
from noisescale_core.estimators.path import without_lookahead


def small_model():
    """Fewer elements than a sketch has buckets, so that sketches are exact."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 10))


def follow(model, optimizer, faults=None):
    parameters = list(model.parameters())

    def fail(fault):
        if faults is None:
            raise fault
        faults.append(fault)

    guarded = functools.partial(functools.partial, guard, fail)
    return UpdatePath(parameters, optimizer, job=OneProcess(parameters), guard=guarded)


def step(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    optimizer.zero_grad()
    model(torch.randn(8, 6, generator=generator)).square().mean().backward()
    optimizer.step()


def flat(model):
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def two_groups(make, model, **options):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    return make([{"params": matrices, "weight_decay": 0.5}, {"params": others, "weight_decay": 0.0}], **options)


OPTIMIZERS = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    "momentum": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    "Adam with an L2 penalty": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.5),
    "AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0),
    "a rate on the device": lambda model: torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01), foreach=False),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_is_the_difference_that_the_step_made(name):
    model = small_model()
    optimizer = OPTIMIZERS[name](model)
    path = follow(model, optimizer)
    start = flat(model)

    for seed in range(4):
        before = flat(model)
        step(model, optimizer, seed)
        [look] = path.arrived()

        assert look.number == seed
        assert look.sq_norm == pytest.approx(float((flat(model) - before).square().sum()), rel=1e-4)
        assert look.sq_distance == pytest.approx(float((flat(model) - start).square().sum()), rel=1e-4)
        assert look.moved_sq == 0


@pytest.mark.parametrize("is_named", [False, True])
def test_an_update_begins_when_the_closure_of_its_step_has_ended(is_named):
    model = small_model()
    optimizer = OPTIMIZERS["Adam with an L2 penalty"](model)
    path = follow(model, optimizer)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(8, 6)).square().mean()
        loss.backward()
        with torch.no_grad():
            model[0].bias.add_(1.0)  # a change that no update made
        return loss

    before = flat(model)
    loss = optimizer.step(closure=closure) if is_named else optimizer.step(closure)

    before[model[0].weight.numel() : model[0].weight.numel() + 20] += 1.0
    [look] = path.arrived()
    assert loss > 0
    assert look.sq_norm == pytest.approx(float((flat(model) - before).square().sum()), rel=1e-4)


def test_a_step_that_ignores_its_closure_counts_and_is_not_looked_at():
    model = small_model()

    class Ignores(torch.optim.Optimizer):
        def step(self, closure=None):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(0.9)

    optimizer = Ignores(model.parameters(), {"lr": 0.1})
    path = follow(model, optimizer)

    optimizer.step(lambda: 1.0)
    assert (path.num_updates, path.arrived()) == (1, [])

    step(model, optimizer, 0)
    assert [look.number for look in path.arrived()] == [1]


def test_an_update_that_ends_in_an_error_is_not_the_last_that_is_looked_at():
    """As where memory ran out and the program tries again: it counts, and the looks go on."""
    model = small_model()

    class Fails(torch.optim.SGD):
        num_calls = 0

        def step(self, closure=None):
            self.num_calls += 1
            if self.num_calls == 2:
                raise MemoryError
            for parameter in model.parameters():
                parameter.data.sub_(parameter.grad)

    optimizer = Fails(model.parameters(), lr=0.1)
    path = follow(model, optimizer)
    step(model, optimizer, 0)

    with pytest.raises(MemoryError):
        step(model, optimizer, 1)
    step(model, optimizer, 2)
    before = flat(model)
    step(model, optimizer, 3)

    looks = path.arrived()
    assert [look.number for look in looks] == [0, 2, 3]
    assert looks[-1].sq_norm == pytest.approx(float((flat(model) - before).square().sum()), rel=1e-4)


def test_what_else_an_optimizer_takes_is_handed_to_it_as_it_is():
    model, taken = small_model(), []

    class Takes(torch.optim.Optimizer):
        def step(self, gradients=None, *, scale=1.0):
            taken.append((gradients, scale))
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(0.9)

    optimizer = Takes(model.parameters(), {"lr": 0.1})
    path = follow(model, optimizer)

    optimizer.step([1.0, 2.0], scale=3.0)

    assert taken == [([1.0, 2.0], 3.0)]
    assert [look.number for look in path.arrived()] == [0]


def test_decoupled_decay_is_no_part_of_the_update_and_each_group_has_its_own():
    """AdamW beside an Adam that starts each step from the decayed parameters: what that one does is the update."""
    model = small_model()
    optimizer = two_groups(torch.optim.AdamW, model, lr=0.1)
    path = follow(model, optimizer)

    for seed in range(3):
        decayed = torch.cat([(p.detach() * (1 - (0.05 if p.ndim == 2 else 0.0))).flatten() for p in model.parameters()])
        step(model, optimizer, seed)
        [look] = path.arrived()

        update = flat(model) - decayed.double()
        assert look.sq_norm == pytest.approx(float(update.square().sum()), rel=1e-4)
        assert look.decay == pytest.approx(0.05)


def test_muons_decay_is_no_part_of_its_update():
    model = nn.Linear(6, 20, bias=False)
    optimizer = torch.optim.Muon(model.parameters(), lr=0.1, weight_decay=0.5)
    path = follow(model, optimizer)
    before = flat(model)

    step(model, optimizer, 0)

    [look] = path.arrived()
    assert look.sq_norm == pytest.approx(float((flat(model) - 0.95 * before).square().sum()), rel=1e-4)
    assert look.momentum == pytest.approx(without_lookahead(0.95))


def test_an_adam_whose_decay_was_made_decoupled_is_told_by_its_group():
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.5, decoupled_weight_decay=True)
    path = follow(model, optimizer)
    before = flat(model)

    step(model, optimizer, 0)

    [look] = path.arrived()
    assert look.sq_norm == pytest.approx(float((flat(model) - 0.95 * before).square().sum()), rel=1e-4)


@pytest.mark.parametrize(
    ("group", "momentum"),
    [
        ({"lr": 0.1}, 0.0),
        ({"momentum": 0.9, "nesterov": False}, 0.9),
        ({"momentum": 0.9, "nesterov": True}, without_lookahead(0.9)),
        ({"betas": (0.8, 0.99)}, 0.8),
        ({"betas": (torch.tensor(0.5), 0.99)}, 0.5),
        ({"momentum": 1.0}, 0.0),
    ],
)
def test_the_momentum_is_that_of_the_optimizers_group(group, momentum):
    assert momentum_of(group) == pytest.approx(momentum)


def test_parameters_that_are_loaded_before_the_first_step_are_the_start():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = follow(model, optimizer)
    model.load_state_dict({name: 2 * value for name, value in model.state_dict().items()})
    start = flat(model)

    step(model, optimizer, 0)

    [look] = path.arrived()
    assert look.sq_distance == pytest.approx(float((flat(model) - start).square().sum()), rel=1e-4)


def test_looks_are_at_every_update_first_and_one_in_sixteen_later():
    plan, places = LookPlan(), []
    while plan.next < 4000:
        places.append(plan.next)
        plan.advance()

    assert places[: 2 * GROWTH] == list(range(2 * GROWTH))
    assert all(later > earlier for earlier, later in itertools.pairwise(places))
    late = [place for place in places if place >= 1000]
    assert len(late) == pytest.approx(3000 / LONGEST, abs=1)
    # every place of a stretch is drawn
    assert len({place % LONGEST for place in late}) > LONGEST / 2


def test_two_ranks_look_at_the_same_updates():
    plans = LookPlan(), LookPlan()

    for _ in range(100):
        for plan in plans:
            plan.advance()
        assert plans[0].next == plans[1].next


def test_looks_that_cost_more_than_a_hundredth_of_the_steps_are_rarer():
    cheap, dear = LookPlan(), LookPlan()

    cheap.adapt(look_seconds=0.15, step_seconds=1.0)
    dear.adapt(look_seconds=0.5, step_seconds=1.0)
    longest = LookPlan()
    longest.adapt(look_seconds=5.0, step_seconds=1.0)

    assert (cheap.longest, dear.longest, longest.longest) == (LONGEST, 64, LONGEST_OF_CHEAP_STEPS)


def test_looks_take_a_quarter_of_a_budget():
    assert (share_of_looks(None), share_of_looks(0.01), share_of_looks(0.5)) == (SHARE, 0.0025, SHARE)
    within, longest = LookPlan(share_of_looks(0.01)), LookPlan(share_of_looks(0.001))

    within.adapt(look_seconds=0.5, step_seconds=1.0)
    longest.adapt(look_seconds=50.0, step_seconds=1.0)

    assert (within.longest, longest.longest) == (256, 4 * LONGEST_OF_CHEAP_STEPS)


def test_closing_leaves_no_hook_on_the_optimizer():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = follow(model, optimizer)

    path.close()

    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_looks_that_nobody_asks_for_do_not_pile_up_and_go_on_when_somebody_does(monkeypatch):
    monkeypatch.setattr(update_path, "MAX_WAITING", 10)
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = follow(model, optimizer)
    for seed in range(50):
        step(model, optimizer, seed)

    looks = path.arrived()
    assert len(looks) == 10
    assert looks[-1].number < 20
    for seed in range(50, 70):
        step(model, optimizer, seed)
    assert path.arrived()


def test_after_a_fault_the_training_goes_on_and_nothing_more_is_looked_at(monkeypatch):
    model, faults = small_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = follow(model, optimizer, faults)
    monkeypatch.setattr(path._sketch, "now", lambda: 1 / 0)
    before = flat(model)

    for seed in range(3):
        step(model, optimizer, seed)

    assert len(faults) == 1
    assert path.arrived() == []
    assert not torch.equal(before, flat(model))


def test_a_start_from_an_earlier_process_is_gone_on_from_where_the_parameters_are_alike():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = follow(model, optimizer)
    assert first.start() is None
    start = flat(model)
    step(model, optimizer, 0)
    kept = first.start()
    first.close()

    second = follow(model, optimizer)
    assert second.go_on_from(*kept)
    step(model, optimizer, 1)

    [look] = second.arrived()
    assert look.sq_distance == pytest.approx(float((flat(model) - start).square().sum()), rel=1e-4)
    other = nn.Linear(3, 3)
    assert not follow(other, torch.optim.SGD(other.parameters(), lr=0.1)).go_on_from(*kept)


def test_other_parameters_begin_another_path():
    model = small_model()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    path = UpdatePath(
        list(model[0].parameters()), optimizer, job=OneProcess(list(model[0].parameters())), guard=lambda body: body
    )
    step(model, optimizer, 0)
    [before] = path.arrived()
    optimizer.add_param_group({"params": list(model[2].parameters())})
    path.watch(list(model.parameters()))
    start = flat(model)

    step(model, optimizer, 1)

    [look] = path.arrived()
    assert look.generation > before.generation
    assert look.sq_distance == pytest.approx(float((flat(model) - start).square().sum()), rel=1e-4)
