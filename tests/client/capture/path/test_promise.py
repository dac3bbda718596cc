"""What an update promises: right on a quadratic whose gradient and noise are known, for each optimizer."""

import math

import pytest
import torch
from torch import nn

from noisescale.capture.path import metric
from noisescale.capture.path.affine_updates import AffineUpdates
from noisescale.capture.path.metric import ON_CPU, Part
from noisescale.capture.path.promise import StepPromise
from noisescale_core.estimators.noise_scale import from_unequal_groups
from noisescale_core.estimators.promise import promised_fall, scale_of, signal_of_one

SIZES = (3, 1, 4)
"""Examples of the small batches: unequal."""

DRAWS = 1000


class PathOfLooks:
    """Looks at each update."""

    looks_at_next = True

    def __init__(self, num_updates):
        self.num_updates = num_updates

    def is_captured(self):
        return False

    def add_look_seconds(self, seconds):
        pass


class Quadratic:
    """Loss ½ Σ h θ² + n · θ of an example, so that G = h θ and the noise of an example's gradient is n."""

    def __init__(self, make, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.parameters = [nn.Parameter(self.normal(4, 3)), nn.Parameter(self.normal(5))]
        self.curvature = [0.2 + self.normal(*p.shape).square() for p in self.parameters]
        self.noise = [0.5 + 2 * self.normal(*p.shape).square() for p in self.parameters]
        self.optimizer = make(self.parameters)

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def gradient(self):
        """G."""
        return [h * p.detach() for h, p in zip(self.curvature, self.parameters, strict=True)]

    def small_batches(self):
        """What each small batch adds to the step's mean gradient."""
        total, found = sum(SIZES), []
        for size in SIZES:
            noises = [s * self.normal(*s.shape) / math.sqrt(size) for s in self.noise]
            means = [g + n for g, n in zip(self.gradient(), noises, strict=True)]
            found.append([mean * size / total for mean in means])
        return found

    def give(self, small_batches, scale=1.0):
        for index, p in enumerate(self.parameters):
            p.grad = scale * torch.stack([one[index] for one in small_batches]).sum(0)

    def update(self, small_batches, scale=1.0):
        """What a step makes of them; parameters and optimizer are as before afterwards."""
        before = [p.detach().clone() for p in self.parameters]
        state = self.optimizer.state_dict()
        state = {**state, "state": {k: {n: v.clone() for n, v in s.items()} for k, s in state["state"].items()}}
        self.give(small_batches, scale)
        self.optimizer.step()
        made = [(p.detach() - b).double() for p, b in zip(self.parameters, before, strict=True)]
        with torch.no_grad():
            for p, b in zip(self.parameters, before, strict=True):
                p.copy_(b)
        self.optimizer.load_state_dict(state)
        return made

    def train(self, num_steps):
        for _ in range(num_steps):
            self.give(self.small_batches())
            self.optimizer.step()
        return self


def inner(one, other):
    return float(sum((a.double() * b.double()).sum() for a, b in zip(one, other, strict=True)))


def measure(quadratic, small_batches, clipped_to=1.0, *, logged_scale=1.0, number=3, are_equal=False):
    """The promise as the parts of the capture give it; gradients are clipped after the log."""
    promise = StepPromise(
        quadratic.parameters, quadratic.optimizer, sees_small_batches=True, are_equal=are_equal, may_look=lambda: True
    )
    promise.path = PathOfLooks(number)
    promise.see_logged(None, len(SIZES))
    promise.clear()
    is_ready = promise.is_ready()
    for size, gradients in zip(SIZES, small_batches, strict=True):
        promise.add([0, 1], [logged_scale * gradient for gradient in gradients])
        promise.end_small_batch(size)
    small, share = promise.values(scale=logged_scale).tolist()
    if not is_ready:
        promise.clear()
    promise.see_logged(7, len(SIZES))
    quadratic.give(small_batches, clipped_to)
    promise.before_update(number, is_look=True)
    [look] = promise.arrived()
    assert (look.number, look.num_steps) == (number, 7)
    terms = from_unequal_groups(
        weighted_sq_norm=sum(inner(s, s) * sum(SIZES) / n for s, n in zip(small_batches, SIZES, strict=True)),
        big_sq_norm=inner(*2 * [[sum(s[i] for s in small_batches) for i in (0, 1)]]),
        num_groups=len(SIZES),
        batch_size=sum(SIZES),
    )
    scale = scale_of(look.sq_norm, terms.grad_sq_norm + terms.trace_cov / sum(SIZES))
    if is_ready:
        assert look.weight is None
        signal = signal_of_one(look.own / scale**2, small, share)
    else:
        signal = look.weight * terms.grad_sq_norm
    return promised_fall(rate=look.rate, past=look.past, scale=scale, signal=signal)


def two_groups(make, **options):
    return lambda parameters: make(
        [{"params": parameters[:1], "lr": 0.02, "weight_decay": 0.3}, {"params": parameters[1:], "lr": 0.01}],
        **options,
    )


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "SGD with an L2 penalty": lambda p: torch.optim.SGD(p, lr=0.01, weight_decay=0.3),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8),
    "damped momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8, dampening=0.5, weight_decay=0.1),
    "Nesterov": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8, nesterov=True),
    "momentum at two rates": two_groups(torch.optim.SGD, momentum=0.8),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "Adam with an L2 penalty": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.3),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.0),
    "AdamW at two rates": two_groups(torch.optim.AdamW),
}

NUM_STEPS = 300
"""Before the promise is measured: Adam's divisor then holds a thousandth of the step's own gradient."""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_promise_has_the_mean_that_the_updates_times_the_true_gradient_have_and_the_same_batchs_has_not(name):
    """Whoever multiplies the update with the gradient of its own batch counts that batch's noise."""
    quadratic = Quadratic(OPTIMIZERS[name]).train(NUM_STEPS)
    truth = quadratic.gradient()
    promised, exact, of_same_batch = [], [], []

    for number in range(DRAWS):
        small_batches = quadratic.small_batches()
        update = without_decay(quadratic, quadratic.update(small_batches))
        exact.append(-inner(update, truth))
        of_same_batch.append(-inner(update, [sum(s[i] for s in small_batches) for i in (0, 1)]))
        promised.append(measure(quadratic, small_batches, number=number))

    off, error = mean_and_error([p - e for p, e in zip(promised, exact, strict=True)])
    bias, bias_error = mean_and_error([s - e for s, e in zip(of_same_batch, exact, strict=True)])
    assert abs(off) < 4 * error + 0.02 * abs(mean_and_error(exact)[0])
    assert bias > 10 * bias_error


def without_decay(quadratic, update):
    """Decoupled decay is no part of an update."""
    found = []
    for p, made in zip(quadratic.parameters, update, strict=True):
        [group] = [one for one in quadratic.optimizer.param_groups if any(p is q for q in one["params"])]
        is_decoupled = isinstance(quadratic.optimizer, torch.optim.AdamW)
        found.append(made + is_decoupled * group["lr"] * group["weight_decay"] * p.detach().double())
    return found


def mean_and_error(numbers):
    found = torch.tensor(numbers, dtype=torch.float64)
    return float(found.mean()), float(found.std() / math.sqrt(len(numbers)))


@pytest.mark.parametrize("name", ["momentum", "AdamW at two rates"])
def test_without_noise_the_promise_is_minus_the_update_times_the_gradient(name):
    quadratic = Quadratic(OPTIMIZERS[name]).train(NUM_STEPS)
    quadratic.noise = [torch.zeros_like(s) for s in quadratic.noise]
    small_batches = quadratic.small_batches()

    exact = -inner(without_decay(quadratic, quadratic.update(small_batches)), quadratic.gradient())

    assert measure(quadratic, small_batches) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam"])
@pytest.mark.parametrize("clip", [0.25, 8.0])
def test_a_gradient_that_was_clipped_or_of_a_summed_loss_promises_the_mean_loss_what_its_update_does(name, clip):
    quadratic = Quadratic(OPTIMIZERS[name]).train(NUM_STEPS)
    quadratic.noise = [torch.zeros_like(s) for s in quadratic.noise]
    small_batches = quadratic.small_batches()

    exact = -inner(quadratic.update(small_batches, clip), quadratic.gradient())

    # Adam's divisor is that of the past, and the update's holds a thousandth of a gradient 8 times as long
    assert measure(quadratic, small_batches, clip) == pytest.approx(exact, rel=0.1 if name == "Adam" else 1e-3)


def test_a_loss_scalers_factor_is_no_part_of_the_promise():
    quadratic = Quadratic(OPTIMIZERS["Adam"]).train(NUM_STEPS)
    small_batches = quadratic.small_batches()

    plain = measure(quadratic, small_batches)

    assert measure(quadratic, small_batches, logged_scale=1024.0) == pytest.approx(plain, rel=1e-5)


def test_adams_first_steps_promise_nothing():
    quadratic = Quadratic(OPTIMIZERS["Adam"]).train(4)
    with pytest.raises(ValueError, match="unpack"):  # no look has arrived
        measure(quadratic, quadratic.small_batches())


@pytest.mark.parametrize("shape", [(7,), (300, 700), (1, 3 * ON_CPU + 5)])
def test_the_metric_is_that_of_the_formula_whatever_the_pieces(shape):
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(shape)), nn.Parameter(torch.randn(3, dtype=torch.float64))]
    optimizer = torch.optim.Adam(parameters, lr=0.1, weight_decay=0.2)
    for _ in range(6):
        for p in parameters:
            p.grad = torch.randn_like(p)
        optimizer.step()
    with torch.no_grad():
        optimizer.state[parameters[0]]["exp_avg_sq"].view(-1)[:2] = 0
    updates = AffineUpdates(optimizer)
    parts = [Part(torch.randn_like(p), updates.of(p, updates.groups[0]), 1.0) for p in parameters]

    plain, own, past = metric.look_at(parts).tolist()

    expected_own, expected_past = 0.0, 0.0
    for p, part in zip(parameters, parts, strict=True):
        state = optimizer.state[p]
        v = state["exp_avg_sq"].double()
        divisor = (v / (1 - 0.999**6)).sqrt() + 1e-8
        divisor = torch.where(v == 0, math.inf, divisor)
        weight, gradient = (1 - 0.9) / (1 - 0.9**7), part.gradient.double()
        remembered = 0.9 / (1 - 0.9**7) * state["exp_avg"].double() + weight * 0.2 * p.detach().double()
        expected_own += float((weight * gradient.square() / divisor).sum())
        expected_past += float((remembered * gradient / divisor).sum())
    assert plain == pytest.approx(sum(float(part.gradient.double().square().sum()) for part in parts), rel=1e-5)
    assert own == pytest.approx(expected_own, rel=1e-5)
    assert float(metric.sq_norm(parts)) == pytest.approx(expected_own, rel=1e-5)
    assert past == pytest.approx(expected_past, rel=1e-4, abs=1e-4 * expected_own)


def test_small_batches_of_equal_weight_count_as_such():
    """A loop that divides each loss by their number has the same promise on average, whatever the sizes."""
    quadratic = Quadratic(OPTIMIZERS["Adam"]).train(NUM_STEPS)
    promised, exact = [], []
    for number in range(DRAWS):
        small_batches = [
            [s * sum(SIZES) / size / len(SIZES) for s in one]
            for one, size in zip(quadratic.small_batches(), SIZES, strict=True)
        ]
        exact.append(-inner(quadratic.update(small_batches), quadratic.gradient()))
        promised.append(measure(quadratic, small_batches, number=number, are_equal=True))

    off, error = mean_and_error([p - e for p, e in zip(promised, exact, strict=True)])
    assert abs(off) < 4 * error + 0.02 * abs(mean_and_error(exact)[0])


@pytest.mark.parametrize(
    "make",
    [torch.optim.RMSprop, torch.optim.NAdam, torch.optim.Adagrad, type("Mine", (torch.optim.Adam,), {})],
)
def test_updates_of_other_optimizers_are_not_known(make):
    assert not AffineUpdates.is_known(make([nn.Parameter(torch.zeros(2))], lr=0.1))


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"maximize": True}])
def test_no_promise_is_made_of_a_rate_of_nothing_or_of_a_loss_that_is_to_rise(options):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(2))], **{"lr": 0.1} | options)

    assert AffineUpdates(optimizer).rates() is None
