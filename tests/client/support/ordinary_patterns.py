"""Patterns of ordinary training programs: how one of them takes a step, and what its small batches really are.

Weights stay where they are, so that each step has the same truth.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from client_runs import flat_gradient, make_kept_run, terms_of_means

functional = nn.functional
NUM_EXAMPLES, NUM_PARTS = 32, 4
Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
Parts = Sequence[tuple[Tensor, Tensor]]


def make_mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 12), nn.Tanh(), nn.Linear(12, 3)).double()


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


def parts_of(num_examples: int, num_parts: int) -> Parts:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(num_examples, 10, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (num_examples,), generator=generator)
    return list(zip(x.chunk(num_parts), y.chunk(num_parts), strict=True))


def take_step(loop: "Loop") -> None:
    """Each part's backward, then the log, then the optimizer."""
    loop.backward()
    loop.log_and_step()


@dataclass(frozen=True)
class Pattern:
    """One way to train.

    Attributes:
        loss: The mean loss of a small batch.
        make: The model.
        step: A step of the loop.
        num_examples: Of each step in turn, the last one for good.
        by_examples: One backward a step, each example a small batch.
        flags: What its rows carry.
        tolerance: Relative, of both terms.
    """

    loss: Loss = cross_entropy
    make: Callable[[], nn.Module] = make_mlp
    step: Callable[["Loop"], None] = take_step
    num_examples: tuple[int, ...] = (NUM_EXAMPLES,)
    by_examples: bool = False
    flags: int = 0
    tolerance: float = 1e-9


@dataclass
class Loop:
    """A pattern in a run."""

    pattern: Pattern
    num_steps: int = 0
    watch: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = self.pattern.make()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
        self.run, self.kept = make_kept_run(strict=False)
        self.run.watch(self.model, self.optimizer, **self.watch)

    @property
    def size(self) -> int:
        sizes = self.pattern.num_examples
        return sizes[min(self.num_steps, len(sizes) - 1)]

    @property
    def parts(self) -> Parts:
        return parts_of(self.size, 1 if self.pattern.by_examples else NUM_PARTS)

    def losses(self) -> Iterator[Tensor]:
        for x, y in self.parts:
            torch.manual_seed(7)
            yield self.pattern.loss(self.model, x, y)

    def backward(self) -> None:
        for loss in self.losses():
            (loss / len(self.parts)).backward()

    def log_and_step(self, batch_size: int | None = None) -> None:
        self.run.log_gradients(batch_size=batch_size)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def truth(self) -> tuple[float, float]:
        """tr Σ and |G|² from the gradients of the small batches, each computed by itself."""
        twin = copy.deepcopy(self.model)
        parts = parts_of(self.size, self.size if self.pattern.by_examples else NUM_PARTS)
        means = []
        for x, y in parts:
            torch.manual_seed(7)
            means.append(flat_gradient(self.pattern.loss(twin, x, y), list(twin.parameters())))
        return terms_of_means(means, [len(x) for x, _ in parts])

    def steps(self, number: int) -> list[tuple[float, float]]:
        truths = []
        for _ in range(number):
            truths.append(self.truth())
            self.pattern.step(self)
            self.num_steps += 1
        self.run.finish()
        return truths


class Heads(nn.Module):
    """Two tasks on one body."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.classes, self.value = nn.Linear(10, 12), nn.Linear(12, 3), nn.Linear(12, 1)
        self.double()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x).tanh()
        return self.classes(features), self.value(features)


class Experts(nn.Module):
    """Each example goes to one of four experts."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(10, 4)
        self.experts = nn.ModuleList(nn.Linear(10, 3) for _ in range(4))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(1)
        chosen, output = weights.argmax(1), x.new_zeros(len(x), 3)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                output = output.index_add(0, rows, expert(x[rows]) * weights[rows, number : number + 1])
        return output


class Recurrent(nn.Module):
    """One layer called three times, and one weight used by two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.read, self.again, self.tied, self.out = (
            nn.Linear(10, 8),
            nn.Linear(8, 8),
            nn.Linear(8, 8),
            nn.Linear(8, 3),
        )
        self.tied.weight = self.again.weight
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 8)
        for _ in range(3):
            state = (self.read(x) + self.again(state)).tanh()
        return self.out(self.tied(state))


class Checkpointed(nn.Module):
    """Runs its forward again in the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = make_mlp()

    def forward(self, x: Tensor) -> Tensor:
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)


class Quantised(nn.Linear):
    """Weights in steps of an eighth, gradients as if they were not."""

    def forward(self, x: Tensor) -> Tensor:
        rounded = self.weight + ((self.weight * 8).round() / 8 - self.weight).detach()
        return functional.linear(x, rounded, self.bias)


class Sequences(nn.Module):
    """An LSTM over five steps of two features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.out = nn.LSTM(2, 8, batch_first=True), nn.Linear(8, 3)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.inner(x.view(len(x), 5, 2))
        return self.out(states[:, -1])


class Attending(nn.Module):
    """PyTorch's own encoder over five steps of two features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.read, self.out = nn.Linear(2, 8), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layer(self.read(x.view(len(x), 5, 2))).mean(1))


def make_quantised() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(Quantised(10, 12), nn.Tanh(), Quantised(12, 3)).double()


def make_spectral() -> nn.Module:
    model = make_mlp()
    nn.utils.parametrizations.spectral_norm(model[0])
    return model.eval()


def make_clamped() -> nn.Module:
    model = make_mlp()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    return model


def make_dropout() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 12), nn.Dropout(0.5), nn.Tanh(), nn.Linear(12, 3)).double()


def of_both_heads(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    classes, value = model(x)
    return functional.cross_entropy(classes, y) + value.square().mean()


def with_gradient_penalty(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    probed = x.clone().requires_grad_()
    output = model(probed)
    (slope,) = torch.autograd.grad(output.logsumexp(1).sum(), probed, create_graph=True)
    return functional.cross_entropy(output, y) + 0.1 * slope.square().sum(1).mean()


def with_a_teacher(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    with torch.no_grad():
        taught = model(x + 0.1)
    output = model(x)
    return functional.cross_entropy(output, y) + functional.mse_loss(output, taught)


def of_mixed_examples(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    output = model(0.3 * x + 0.7 * x.flip(0))
    return 0.3 * functional.cross_entropy(output, y) + 0.7 * functional.cross_entropy(output, y.flip(0))


def of_two_views(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Both in one forward, as most contrastive programs do; the other examples are the negatives."""
    first, second = functional.normalize(model(torch.cat([x, x + 0.1])), dim=1).chunk(2)
    return functional.cross_entropy(first @ second.T / 0.1, torch.arange(len(x)))


def of_triplets(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    output = model(x)
    return functional.triplet_margin_loss(output, output.roll(1, 0), output.roll(2, 0))


def of_averaged_views(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Test-time augmentation while training: two forwards, one answer."""
    return functional.cross_entropy((model(x) + model(x.flip(1))) / 2, y)


def with_smoothed_labels(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, label_smoothing=0.1)


def with_a_penalty_on_weights(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return cross_entropy(model, x, y) + 0.1 * sum(parameter.square().sum() for parameter in model.parameters())


def with_class_weights(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, weight=x.new_tensor([1.0, 5.0, 0.2]))


def with_padding(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), torch.where(torch.arange(len(y)) % 3 == y, -100, y))


def by_importance(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return (functional.cross_entropy(model(x), y, reduction="none") * (1 + y)).mean()


def by_functional_call(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    output = torch.func.functional_call(model, dict(model.named_parameters()), (x,))
    return functional.cross_entropy(output, y)


def in_bfloat16(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return functional.cross_entropy(model(x.float()).float(), y)


def evaluate_between(loop: Loop) -> None:
    loop.model.eval()
    with torch.no_grad():
        loop.model(parts_of(64, 1)[0][0])
    loop.model.train()
    take_step(loop)


def evaluate_inside(loop: Loop) -> None:
    for loss in loop.losses():
        (loss / len(loop.parts)).backward()
        with torch.no_grad():
            loop.model(parts_of(64, 1)[0][0])
    loop.log_and_step()


def say_the_size(loop: Loop) -> None:
    """Two rows of the model's input are one example."""
    loop.backward()
    loop.log_and_step(batch_size=loop.size)


def clear_in_place(loop: Loop) -> None:
    loop.optimizer.zero_grad(set_to_none=False)
    take_step(loop)
    loop.optimizer.zero_grad(set_to_none=False)


def resume(loop: Loop) -> None:
    if loop.num_steps == 2:
        loop.optimizer.load_state_dict(copy.deepcopy(loop.optimizer.state_dict()))
        loop.model.load_state_dict(copy.deepcopy(loop.model.state_dict()))
    take_step(loop)


def sharpness_aware(loop: Loop) -> None:
    """A first gradient only to move by; the second one, back at the weights, is the step's."""
    loop.backward()
    moves = [1e-12 * parameter.grad for parameter in loop.model.parameters()]
    with torch.no_grad():
        for parameter, move in zip(loop.model.parameters(), moves, strict=True):
            parameter.add_(move)
    loop.optimizer.zero_grad()
    loop.backward()
    with torch.no_grad():
        for parameter, move in zip(loop.model.parameters(), moves, strict=True):
            parameter.sub_(move)
    loop.log_and_step()


def average_the_weights(loop: Loop) -> None:
    """A teacher's copy that follows the weights after each step."""
    if not hasattr(loop, "teacher"):
        loop.teacher = torch.optim.swa_utils.AveragedModel(loop.model)
    take_step(loop)
    loop.teacher.update_parameters(loop.model)
    with torch.no_grad():
        loop.teacher(parts_of(8, 1)[0][0])


def clip_after_the_log(loop: Loop) -> None:
    loop.backward()
    loop.run.log_gradients()
    nn.utils.clip_grad_norm_(loop.model.parameters(), 0.01)
    loop.optimizer.step()
    loop.optimizer.zero_grad()


def gradient_surgery(loop: Loop) -> None:
    """Two tasks' gradients by `autograd.grad`, one projected, the sum put where the optimizer looks."""
    parameters = list(loop.model.parameters())
    for x, y in loop.parts:
        output = loop.model(x)
        first = torch.autograd.grad(functional.cross_entropy(output, y), parameters, retain_graph=True)
        second = torch.autograd.grad(output.square().mean(), parameters)
        along = sum((a * b).sum() for a, b in zip(first, second, strict=True)) / sum(b.square().sum() for b in second)
        for parameter, a, b in zip(parameters, first, second, strict=True):
            step = (a - along.clamp(max=0) * b + b) / len(loop.parts)
            parameter.grad = step if parameter.grad is None else parameter.grad + step
    loop.log_and_step()


def clip_before_the_log(loop: Loop) -> None:
    loop.backward()
    nn.utils.clip_grad_norm_(loop.model.parameters(), 0.01)
    loop.log_and_step()


def add_noise(loop: Loop) -> None:
    loop.backward()
    for parameter in loop.model.parameters():
        parameter.grad.add_(torch.randn_like(parameter.grad) * 0.1)
    loop.log_and_step()
