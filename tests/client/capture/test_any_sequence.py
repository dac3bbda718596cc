"""Whatever a loop does in whatever order: nothing is raised, nothing changes, and a number is the right number."""

import copy
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from client_runs import flat_gradient, make_kept_run, terms_of_means
from noisescale.capture.small_batches.gradient_rows import GradientRows


@pytest.fixture
def unfollowed(monkeypatch):
    """As after the first steps of a training in which each backward came through the one forward before it."""
    monkeypatch.setattr("noisescale.capture.forwards.NUM_REGULAR_STEPS", 0)


EXAMPLES = st.integers(1, 4)

ONE_PASS = st.tuples(
    st.sampled_from(["backward", "two forwards", "ignored", "asked for", "ignored, asked for"]), EXAMPLES
)

EVENT = st.one_of(
    ONE_PASS,
    ONE_PASS,
    st.tuples(st.just("micro_batch"), st.lists(ONE_PASS, max_size=3), st.sampled_from(["read", "host", "device"])),
    st.sampled_from(["clear", "zero", "halve", "log", "step", "evaluate", "evaluate with gradients"]).map(
        lambda e: (e,)
    ),
)


class World:
    """A watched model, its unwatched twin, and what a step's small batches are by their definition."""

    def __init__(self, options):
        torch.manual_seed(0)
        self.twin = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        self.model = copy.deepcopy(self.twin)
        self.optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (self.model, self.twin)]
        self.run, self.kept = make_kept_run()
        self.is_small = GradientRows.suits(list(self.model.parameters()))
        self.run.watch(self.model, self.optimizers[0], **options)
        self.tolerance = 1e-12 if "split" in options else 0.0  # the one mode here that rounds in another way
        self.numbers = torch.Generator().manual_seed(1)
        self.begin()

    def begin(self):
        self.small_batches = []  # (contribution to p.grad, examples)
        self.is_changed = self.was_asked = self.was_logged = False
        self.inside = None

    # ---- events

    def do(self, event):
        kind, *details = event
        name = kind.replace(", ", "_").replace(" ", "_")
        getattr(self, name)(*details)

    def batch(self, num_examples):
        return torch.randn(num_examples, 3, generator=self.numbers, dtype=torch.float64)

    def differentiate(self, losses):
        """One backward in both models; the contribution by itself."""
        contribution = flat_gradient(losses[1], list(self.twin.parameters()))
        losses[0].backward()
        for parameter, part in zip(
            self.twin.parameters(), contribution.split([p.numel() for p in self.twin.parameters()]), strict=True
        ):
            part = part.view_as(parameter)
            if parameter.grad is None:
                parameter.grad = part.clone()
            else:
                parameter.grad += part
        return contribution

    def loss(self, num_examples):
        inputs = self.batch(num_examples)
        return [one(inputs).square().sum() / 16 for one in (self.model, self.twin)]

    def add(self, contribution, num_examples):
        if self.inside is None:
            self.small_batches.append((contribution, num_examples))
        else:
            self.inside.append((contribution, num_examples))

    def backward(self, num_examples):
        self.add(self.differentiate(self.loss(num_examples)), num_examples)

    def two_forwards(self, num_examples):
        first, second = self.loss(num_examples), self.loss(num_examples)
        losses = [a + b for a, b in zip(first, second, strict=True)]
        self.add(self.differentiate(losses), 2 * num_examples)

    def ignored(self, num_examples):
        with self.run.ignore():
            self.differentiate(self.loss(num_examples))

    def asked_for(self, num_examples):
        self.was_asked = True
        torch.autograd.grad(self.loss(num_examples)[0], list(self.model.parameters()))

    def ignored_asked_for(self, num_examples):
        with self.run.ignore():
            self.asked_for(num_examples)

    def micro_batch(self, passes, told):
        self.inside = []
        size = float(
            sum(n if kind == "backward" else 2 * n for kind, n in passes if kind in ("backward", "two forwards"))
        )
        mark = {"read": None, "host": size, "device": torch.tensor(size)}[told]
        with self.run.micro_batch(mark):
            for one in passes:
                self.do(one)
        inside, self.inside = self.inside, None
        if inside:
            self.small_batches.append((sum(part for part, _ in inside), sum(n for _, n in inside)))

    def clear(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.begin()

    def zero(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=False)
        was_asked = self.was_asked
        self.begin()
        self.is_changed = self.was_asked = was_asked and self.is_small

    def halve(self):
        for one in (self.model, self.twin):
            for parameter in one.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(0.5)
                    self.is_changed = True

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
        self.clear()

    def evaluate(self):
        with torch.no_grad():
            self.model(self.batch(9))

    def evaluate_with_gradients(self):
        self.model.eval()
        self.model(self.batch(9))
        self.model.train()

    def log(self):
        self.was_logged = True
        before = len(self.kept.rows())
        self.run.log_gradients()
        self.run.noise_scale()  # steps of a small model are looked at together
        for row in self.kept.rows()[before:]:
            self.check(row)

    # ---- what must hold

    def check(self, row):
        if row.sum_trace_cov is None:
            assert row.flags != 0
            return
        if self.is_changed and (self.was_asked if self.is_small else self.was_logged):
            # What counters cannot show: of a small model as many changes as gradients asked for, of a large one
            # whether a logged gradient was cleared to zeros or only changed.
            return
        assert not self.is_changed
        assert row.num_micro_batches == len(self.small_batches)
        sizes = [size for _, size in self.small_batches]
        means = [contribution * (sum(sizes) / size) for contribution, size in self.small_batches]
        trace_cov, grad_sq_norm = terms_of_means(means, sizes)
        scale = max(float(mean.square().sum()) for mean in means)
        assert math.isclose(row.sum_trace_cov, trace_cov, rel_tol=1e-8, abs_tol=1e-10 * scale * sum(sizes))
        assert math.isclose(row.sum_grad_sq_norm, grad_sq_norm, rel_tol=1e-8, abs_tol=1e-10 * scale)

    def check_training(self):
        for ours, theirs in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=self.tolerance, atol=self.tolerance)
            assert (ours.grad is None) == (theirs.grad is None)
            if ours.grad is not None:
                torch.testing.assert_close(ours.grad, theirs.grad, rtol=self.tolerance, atol=self.tolerance)


def play(events, options):
    world = World(options)
    for event in events:
        world.do(event)
        world.check_training()
    world.log()
    world.run.finish()
    return world


BY_MICRO_BATCHES = {"small_batches": "micro_batches"}

QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LONG = settings(
    max_examples=1000, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.thorough
@QUICK
@given(st.lists(EVENT, max_size=14))
def test_any_sequence_on_a_small_model(events):
    play(events, BY_MICRO_BATCHES)


@pytest.mark.thorough
@pytest.mark.usefixtures("at_once")
@QUICK
@given(st.lists(EVENT, max_size=14))
def test_any_sequence_on_a_large_model(events):
    play(events, BY_MICRO_BATCHES)


@pytest.mark.thorough
@pytest.mark.usefixtures("at_once", "unfollowed")
@QUICK
@given(st.lists(EVENT, max_size=14))
def test_any_sequence_on_a_large_model_whose_forwards_are_not_followed_any_more(events):
    play(events, BY_MICRO_BATCHES)


@pytest.mark.thorough
@QUICK
@given(
    st.lists(EVENT, max_size=14),
    st.sampled_from(
        [{"every": 2}, {"overhead": 0.5}, {"kinds": ("sign",)}, {"split": 2}, {"small_batches": "per_example"}]
    ),
)
def test_any_sequence_in_the_other_modes_raises_nothing_and_changes_nothing(events, options):
    World.check, check = lambda *_: None, World.check
    try:
        play(events, options)
    finally:
        World.check = check


@pytest.mark.slow
@pytest.mark.parametrize("fixtures", [(), ("at_once",), ("at_once", "unfollowed")])
def test_many_sequences(fixtures, request):
    for fixture in fixtures:
        request.getfixturevalue(fixture)

    @LONG
    @given(st.lists(EVENT, max_size=30))
    def run(events):
        play(events, BY_MICRO_BATCHES)

    run()
