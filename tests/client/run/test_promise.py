"""The promised fall of a whole run against the truth, and what must not change: the training, a resume, other jobs."""

import math

import pytest
import torch
from torch import nn

from client_runs import make_kept_run
from noisescale.capture.path import metric
from noisescale_core.estimators.path import Promised

NUM_STEPS = 150


class Noisy(nn.Module):
    """Loss ½ Σ h θ² + n · θ of an example whose noise n is its input, so that G = h θ is known."""

    def __init__(self, size=40):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(2 * torch.randn(size, generator=generator))
        self.bias = nn.Parameter(2 * torch.randn(3, generator=generator))
        self.register_buffer("curvature", torch.linspace(0.1, 1.0, size))

    def forward(self, noise):
        own = (self.curvature * self.weight.square()).sum() / 2 + self.bias.square().sum() / 2
        return own + noise @ torch.cat([self.weight, self.bias])

    def gradient(self):
        return [self.curvature * self.weight.detach(), self.bias.detach().clone()]


class Training:
    """Steps of accumulated small batches of unequal sizes, and what their updates really promised."""

    def __init__(self, make, *, seed=1, sizes=(5, 3, 8), settings=None, **options):
        self.model, self.sizes = Noisy(), sizes
        self.optimizer = make(list(self.model.parameters()))
        self.run, self.kept = make_kept_run(**(settings or {}))
        self.run.watch(self.model, self.optimizer, **options)
        self.data = torch.Generator().manual_seed(seed)
        self.exact, self.of_same_batch, self.losses = [], [], []

    def backward(self, scale=1.0):
        for size in self.sizes:
            loss = self.model(3 * torch.randn(size, 43, generator=self.data)).mean()
            (scale * loss * size / sum(self.sizes)).backward()
        return float(loss.detach())

    def steps(self, count, *, first=None, clip=None):
        for index in range(count):
            self.optimizer.zero_grad()
            loss = self.backward()
            given = [p.grad.clone() for p in self.model.parameters()]
            self.run.log_gradients(loss=loss, step=first if index == 0 else None)
            if clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), clip)
            self.make_step(given)
        return self

    def make_step(self, given):
        truth = self.model.gradient()
        group = self.optimizer.param_groups[0]
        share = group["lr"] * group["weight_decay"] if isinstance(self.optimizer, torch.optim.AdamW) else 0.0
        before = [(1 - share) * p.detach() for p in self.model.parameters()]
        self.optimizer.step()
        updates = [p.detach() - b for p, b in zip(self.model.parameters(), before, strict=True)]
        self.exact.append(-sum(float(u @ g) for u, g in zip(updates, truth, strict=True)))
        self.of_same_batch.append(-sum(float(u @ g) for u, g in zip(updates, given, strict=True)))

    @property
    def promised(self):
        path = self.run.standing().path
        return None if path is None else path.promised

    def truth(self, numbers=None):
        """Of the updates that the promise is of, up to the last look: the first ones of Adam's are left out."""
        last, _ = self.run._main._log.path.promise._last
        return math.fsum((numbers or self.exact)[last + 1 - int(self.promised.num_updates) : last + 1])


FAMILIES = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.003, momentum=0.8),
    "Nesterov": lambda p: torch.optim.SGD(p, lr=0.003, momentum=0.8, nesterov=True, weight_decay=0.1),
    "two rates": lambda p: torch.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.01}], lr=0.003, momentum=0.8),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.5),
}


class TrainingByClosure(Training):
    """The last small batch's backward pass, the log and the clipping are within `optimizer.step()`, as in Lightning."""

    def steps(self, count, *, clip=None):
        for _ in range(count):
            self.optimizer.zero_grad()
            self.make_step(clip)
        return self

    def make_step(self, clip):
        truth, before = self.model.gradient(), [p.detach().clone() for p in self.model.parameters()]

        def closure():
            loss = self.backward()
            self.run.log_gradients(loss=loss)
            if clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), clip)
            return loss

        self.optimizer.step(closure=closure)
        updates = [p.detach() - b for p, b in zip(self.model.parameters(), before, strict=True)]
        self.exact.append(-sum(float(u @ g) for u, g in zip(updates, truth, strict=True)))


@pytest.mark.parametrize("clip", [None, 3.0])
@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam"])
def test_a_closure_that_makes_the_gradients_within_the_step_changes_nothing(name, clip):
    plain, by_closure = (made(FAMILIES[name]).steps(60, clip=clip) for made in (Training, TrainingByClosure))

    assert by_closure.promised == pytest.approx(plain.promised, rel=1e-6)
    assert by_closure.promised.num_updates > 30
    assert by_closure.exact == pytest.approx(plain.exact, rel=1e-6)
    ours, theirs = (one.run.standing().path for one in (by_closure, plain))
    assert ours.num_updates == theirs.num_updates
    assert ours.sum_sq_norm == pytest.approx(theirs.sum_sq_norm, rel=1e-6)


@pytest.mark.parametrize("clip", [None, 3.0])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_sum_of_promises_is_that_of_the_updates_times_the_true_gradients_within_its_error(name, clip):
    training = Training(FAMILIES[name]).steps(NUM_STEPS, clip=clip)
    promised, truth = training.promised, training.truth()

    assert promised.num_updates > 0.75 * NUM_STEPS
    # clipping takes more off a batch whose noise is large, which is not told apart
    assert promised.total == pytest.approx(truth, abs=3.5 * math.sqrt(promised.variance), rel=0.1)
    assert math.sqrt(promised.variance) < 0.5 * truth
    if clip is None:
        assert training.truth(training.of_same_batch) > 1.08 * truth


def test_the_stated_error_of_the_sum_is_what_it_is_off():
    errors, stated = [], []
    for seed in range(30):
        training = Training(FAMILIES["momentum"], seed=seed).steps(90)
        errors.append(training.promised.total - training.truth())
        stated.append(training.promised.variance)

    rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert abs(sum(errors)) / len(errors) < 3.5 * rms / math.sqrt(len(errors))
    assert rms == pytest.approx(math.sqrt(sum(stated) / len(stated)), rel=0.35)


@pytest.mark.parametrize("name", ["momentum", "AdamW"])
def test_large_models_and_small_ones_have_the_same_promise(name, monkeypatch):
    small = Training(FAMILIES[name]).steps(40)
    monkeypatch.setattr("noisescale.capture.small_batches.gradient_rows.MAX_ELEMENTS", 10)
    large = Training(FAMILIES[name]).steps(40)

    assert small.promised == pytest.approx(large.promised, rel=1e-4)


@pytest.mark.parametrize("options", [{"every": 4}, {"accumulate": "fp32"}, {"kinds": ["adam"]}])
def test_other_ways_to_measure_tell_it_too(options):
    training = Training(FAMILIES["AdamW"], **options).steps(NUM_STEPS)

    assert training.promised.num_updates > 0.6 * NUM_STEPS
    assert training.promised.total == pytest.approx(training.truth(), abs=4 * math.sqrt(training.promised.variance))


def test_each_example_is_a_small_batch_enough_for_an_optimizer_that_divides_by_nothing():
    """Adam's metric would need the gradients of each example themselves."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    found = {}
    for name in ("momentum", "Adam"):
        run, _ = make_kept_run()
        optimizer = FAMILIES[name](list(model.parameters()))
        run.watch(model, optimizer, small_batches="per_example")
        for _ in range(30):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 4)).square().mean()
            loss.backward()
            run.log_gradients(loss=loss)
            optimizer.step()
        found[name] = run.standing().path.promised
        run.finish()

    assert found["momentum"].num_updates > 20
    assert found["Adam"] is None


@pytest.mark.parametrize(
    ("make", "options", "sizes"),
    [
        (lambda p: torch.optim.RMSprop(p, lr=0.001), {}, (5, 3)),
        (lambda p: torch.optim.Adam(p, lr=0.001), {}, (8,)),
        (lambda p: torch.optim.SGD(p, lr=0.001), {}, (8,)),
        (lambda p: torch.optim.SGD(p, lr=0.001, maximize=True), {}, (5, 3)),
        (lambda p: torch.optim.Adam(p, lr=0.001), {"judge_rate": False}, (5, 3)),
    ],
    ids=["an optimizer that is not known", "one small batch", "one of SGD's", "a loss to raise", "off"],
)
def test_where_nothing_is_known_nothing_is_said(make, options, sizes):
    training = Training(make, sizes=sizes, **options).steps(30)

    assert training.promised is None


def with_a_scaler(make):
    training, scaler = Training(make), torch.amp.GradScaler("cpu", init_scale=8.0)
    training.run.unwatch()
    training.run.watch(training.model, training.optimizer, scaler=scaler)
    scaler.scale(torch.ones(()))
    return training, scaler


def test_steps_that_a_loss_scaler_skips_promise_nothing():
    """The gradients of a skipped step were measured, and go with no update."""
    plain = Training(FAMILIES["AdamW"]).steps(40)
    scaled, scaler = with_a_scaler(FAMILIES["AdamW"])
    for index in range(42):
        is_skipped, before = index in (3, 20), scaled.data.get_state()
        scaled.optimizer.zero_grad()
        loss = scaled.backward(scaler.get_scale())
        scaled.run.log_gradients(loss=loss)
        if is_skipped:
            next(iter(scaled.model.parameters())).grad[0] = math.inf
            scaled.data.set_state(before)
        scaler.step(scaled.optimizer)
        scaler.update()

    assert all(map(torch.equal, scaled.model.parameters(), plain.model.parameters()))
    assert scaled.promised == pytest.approx(plain.promised, rel=1e-4)


def test_an_optimizer_that_takes_the_loss_scale_off_by_itself_has_no_promise():
    """It may skip its step, and nobody on the host knows."""
    scaled, scaler = with_a_scaler(lambda p: torch.optim.AdamW(p, lr=0.01, fused=True))
    for _ in range(20):
        scaled.optimizer.zero_grad()
        loss = scaled.backward(scaler.get_scale())
        scaled.run.log_gradients(loss=loss)
        scaler.step(scaled.optimizer)
        scaler.update()

    assert scaled.run.standing().path.num_updates == 20
    assert scaled.promised is None


@pytest.mark.parametrize("name", FAMILIES)
def test_the_training_is_the_same_bit_for_bit(name):
    with_it, without = Training(FAMILIES[name]).steps(40), Training(FAMILIES[name], judge_rate=False).steps(40)

    assert with_it.promised is not None
    assert all(map(torch.equal, with_it.model.parameters(), without.model.parameters()))
    assert (without.optimizer._optimizer_step_pre_hooks, without.run._main.watch._promise) == ({}, None)


def test_a_fault_of_ours_ends_the_promise_and_neither_the_path_nor_the_training(monkeypatch):
    training = Training(FAMILIES["momentum"], settings={"strict": False}).steps(10)
    before = training.promised.num_updates
    monkeypatch.setattr(metric, "look_at", lambda *_: 1 / 0)
    training.steps(30)

    assert training.promised.num_updates == before
    assert training.run.standing().path.num_updates > 30
    assert training.run.faults.count == 1


def test_a_resumed_job_goes_on_with_the_promise_of_its_checkpoint(tmp_path):
    settings = {"run_id": "11111111-2222-4333-8444-555555555555", "folders": (tmp_path,)}
    first = Training(FAMILIES["AdamW"], settings=settings).steps(60)
    checkpoint = {name: value.clone() for name, value in first.model.state_dict().items()}
    state = first.optimizer.state_dict()
    first.run.finish()
    known = first.promised

    second = Training(FAMILIES["AdamW"], seed=2, settings=settings)
    second.model.load_state_dict(checkpoint)
    second.optimizer.load_state_dict(state)
    second.steps(30, first=60)

    assert second.promised.num_updates > known.num_updates + 20
    assert second.promised.total > known.total


def test_rows_add_up_to_the_promise():
    training = Training(FAMILIES["AdamW"]).steps(60)
    training.run.finish()
    rows = [row for row in training.kept.rows() if row.num_promised_updates]
    sums = (
        sum(row.num_promised_updates for row in rows),
        math.fsum(row.sum_promised_fall for row in rows),
        math.fsum(row.promised_fall_variance for row in rows),
    )

    last = rows[-1].step
    assert last >= 50
    assert 0 < sums[0] <= training.promised.num_updates
    assert Promised(*sums).total <= training.promised.total + 1e-9
