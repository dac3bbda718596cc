"""Character transformers on the standard library's source: the demo's frozen, a smaller one while it trains."""

# N examples of the data set, B of a batch, T positions, D coordinates

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from benchmarks.truth.population import Population, rotate
from benchmarks.truth.step import Array, Step, make_step, sq_norm
from demo import characters
from demo.tasks import Batch

CHUNK_EXAMPLES = 64


class SmallTransformer(nn.Module):
    """One block of width 16, the demo's vocabulary and context; so small that every step's gradients can be known."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters.VOCABULARY, width)
        self.position = nn.Parameter(0.02 * torch.randn(characters.CONTEXT, width))
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, characters.VOCABULARY)

    def forward(self, codes: Tensor) -> Tensor:
        """Logits [B, T, vocabulary]."""
        x = self.embedding(codes) + self.position[: codes.shape[1]]
        query, key, value = self.qkv(self.norm_attention(x)).chunk(3, dim=-1)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        x = x + self.out(torch.softmax(scores.masked_fill(future, float("-inf")), -1) @ value)
        return self.head(x + self.feed_forward(self.norm_feed_forward(x)))


def per_example_gradients(model: nn.Module, batch: Batch) -> Array:
    """Every sequence's gradient of the mean cross-entropy over its characters, [N, D]."""
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(weights: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(model, weights, (inputs[None],)).flatten(0, 1), targets)

    # vmap has no rule for the fused attention and would fall back to a loop.
    with sdpa_kernel(SDPBackend.MATH):
        gradients = vmap(grad(loss), in_dims=(None, 0, 0), chunk_size=CHUNK_EXAMPLES)(parameters, *batch)
    return torch.cat([gradients[name].flatten(1) for name in parameters], dim=1).numpy()


@lru_cache(maxsize=4)
def trained(steps: int, *, small: bool = False, batch_size: int = 32, learning_rate: float = 2e-3) -> nn.Module:
    """A model after so many steps of Adam from a fixed seed; not to be changed."""
    task = characters.make_task()
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: nn.Module = SmallTransformer() if small else task.make_model()
    optimizer = task.make_optimizer(model, learning_rate)
    for _ in range(steps):
        optimizer.zero_grad()
        task.loss(model, task.sample(batch_size, generator)).backward()
        optimizer.step()
    return model


def data_set(num_examples: int) -> Batch:
    """So many fixed sequences of the text."""
    return characters.make_task().sample(num_examples, torch.Generator().manual_seed(1))


def frozen(name: str, steps: int, *, num_examples: int = 384, batch_size: int = 64, num_steps: int = 32) -> Population:
    """The demo's transformer at a point of its training; the data set is so many sequences."""
    gradients = per_example_gradients(trained(steps), data_set(num_examples))
    return Population(name, rotate(gradients), batch_size, num_steps)


@dataclass(frozen=True, slots=True)
class CharacterTraining:
    """The small transformer trained on by SGD from a point, over a data set all of whose gradients are known."""

    name: str
    point_steps: int
    learning_rate: float
    batch_size: int = 64
    num_steps: int = 12
    num_examples: int = 64
    group_counts: tuple[int, ...] = (2, 8, 32)

    is_moving: ClassVar[bool] = True
    replicates_at_once: ClassVar[int] = 1

    def steps(self, replicates: int, seed: int) -> Iterator[Step]:
        """The steps of one training."""
        if replicates != 1:
            raise ValueError(f"replicates must be 1, got {replicates}: these trainings run one by one")
        generator = torch.Generator().manual_seed(seed)
        model = SmallTransformer()
        model.load_state_dict(trained(self.point_steps, small=True).state_dict())
        examples = data_set(self.num_examples)
        for _ in range(self.num_steps):
            gradients = per_example_gradients(model, examples)
            index = torch.randint(self.num_examples, (self.batch_size,), generator=generator).numpy()
            mean = gradients.mean(0, dtype=np.float64)
            sq_norms = sq_norm(gradients)
            step = make_step(
                gradients[index].reshape(1, self.group_counts[-1], -1, gradients.shape[1]).mean(2),
                batch_size=self.batch_size,
                per_example_sq_norm=sq_norms[index].mean(keepdims=True),
                trace_cov=np.array([sq_norms.mean() - mean @ mean]),
                grad_sq_norm=np.array([mean @ mean]),
                group_counts=self.group_counts,
            )
            yield step
            descend(model, torch.as_tensor(step.gradient[0]), self.learning_rate)


def descend(model: nn.Module, gradient: Tensor, learning_rate: float) -> None:
    """One step of plain SGD along a flat gradient."""
    parameters = list(model.parameters())
    parts = gradient.split([parameter.numel() for parameter in parameters])
    with torch.no_grad():
        for parameter, part in zip(parameters, parts, strict=True):
            parameter -= learning_rate * part.view_as(parameter)
