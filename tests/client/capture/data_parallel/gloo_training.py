"""A small training that runs alike in one process and on several ranks, and what was measured in it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from client_runs import make_kept_run, make_model
from noisescale.run.run import Run

NUM_STEPS = 3

TERMS = ("sum_trace_cov", "sum_grad_sq_norm")


@dataclass(frozen=True)
class Case:
    """One way of training.

    Attributes:
        sizes: For each rank the examples of its micro-batches.
        wrap: Makes a data-parallel model of one.
        no_sync: Leaves gradients unaveraged in every micro-batch but the last.
        dtype: Of the parameters.
        mark: Sizes are given by `micro_batch()` instead of read.
        watch: Further arguments of `watch()`.
        log_on: Ranks that log.
        is_bit_identical: Watching may not change one bit.
        make: Makes the model.
        data_seed: Of a rank: its data.
        num_steps: Of the optimizer.
        batch_size: It is logged and not read.
        is_summed: The loss is a sum over examples.
        divisor: What the ranks' gradients are divided by when they are averaged; None: their number.
        joins: Sizes of micro-batches that are put together, those of each rank.
    """

    sizes: Sequence[Sequence[int]]
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model
    no_sync: bool = True
    dtype: torch.dtype = torch.float64
    mark: bool = False
    watch: dict[str, Any] = field(default_factory=dict)
    log_on: Sequence[int] = (0,)
    make: Callable[[], nn.Module] = make_model
    data_seed: Callable[[int], int] = lambda rank: rank
    num_steps: int = NUM_STEPS
    batch_size: bool = False
    is_summed: bool = False
    joins: Sequence[Sequence[int]] = ()
    divisor: float | None = None


@dataclass
class Trained:
    """What a training left on one rank."""

    losses: list[Tensor] = field(default_factory=list)
    parameters: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    num_faults: int = 0


def micro_batches(case: Case, step: int, rank: int) -> list[tuple[Tensor, Tensor]]:
    """Inputs and classes of a rank's micro-batches."""
    batches = []
    for number, size in enumerate((case.joins or case.sizes)[rank]):
        generator = torch.Generator().manual_seed(10_000 * step + 100 * case.data_seed(rank) + number)
        inputs = torch.randn(size, 4, generator=generator, dtype=torch.float64).to(case.dtype)
        batches.append((inputs, torch.randint(0, 3, (size,), generator=generator)))
    if case.joins:
        inputs_of, classes_of = zip(*batches, strict=True)
        return [(torch.cat(inputs_of), torch.cat(classes_of))]
    return batches


def train(
    case: Case, ranks: Sequence[int], *, watched: bool, keep: Callable[[Run], None] = lambda run: None
) -> Trained:
    """A few steps of SGD with the data of these ranks: one of them, or all in one process."""
    num_examples = sum(n for sizes in case.sizes for n in sizes)
    mean = (case.divisor or len(case.sizes) if len(ranks) == 1 else 1) / num_examples
    model = case.wrap(case.make().to(case.dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * mean if case.is_summed else 0.1)
    run, kept = make_kept_run(rank=ranks[0])
    if watched:
        run.watch(model, optimizer, **case.watch)
    keep(run)
    trained = Trained()
    for step in range(case.num_steps):
        for rank in ranks:
            batches = micro_batches(case, step, rank)
            for number, (inputs, classes) in enumerate(batches):
                with synchronising(model, number == len(batches) - 1 or not case.no_sync), marked(run, case, inputs):
                    output = model(inputs).to(case.dtype)
                    loss = nn.functional.cross_entropy(output, classes, reduction="sum")
                    (loss if case.is_summed else loss * mean).backward()
                trained.losses.append(loss.detach().clone())
        trained.gradients = [p.grad.detach().clone() for p in model.parameters() if p.grad is not None]
        if len(ranks) > 1 or ranks[0] in case.log_on:
            run.log_gradients(loss=loss.detach(), batch_size=num_examples if case.batch_size else None)
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    trained.parameters = [p.detach().clone() for p in model.parameters()]
    trained.rows = [row._asdict() for row in kept.rows()]
    trained.groups = [{name: getattr(group, name) for name in group.__slots__} for group in kept.groups()]
    trained.num_faults = run.faults.count
    return trained


def marked(run: Run, case: Case, inputs: Tensor) -> contextlib.AbstractContextManager[None]:
    """Give the size of a micro-batch, or let it be read."""
    return run.micro_batch(len(inputs)) if case.mark else contextlib.nullcontext()


@contextlib.contextmanager
def synchronising(model: nn.Module, is_last: bool) -> Iterator[None]:
    """Average gradients in this backward, or not yet."""
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(is_last)
        yield
    elif hasattr(model, "no_sync") and not is_last:
        with model.no_sync():
            yield
    else:
        yield


def measured_on_ranks(case: Case, rank: int, num_ranks: int) -> dict[str, Any]:
    """What one rank measured, and whether watching changed anything on it."""
    plain = train(case, [rank], watched=False)
    watched = train(case, [rank], watched=True)
    pairs = [
        (plain.losses, watched.losses),
        (plain.gradients, watched.gradients),
        (plain.parameters, watched.parameters),
    ]
    return {
        "rows": watched.rows,
        "groups": watched.groups,
        "num_faults": watched.num_faults,
        "is_identical": all(same(a, b) for one, other in pairs for a, b in zip(one, other, strict=True)),
    }


def same(a: Tensor, b: Tensor) -> bool:
    """Bit for bit."""
    return torch.equal(local(a), local(b))


def local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def measured_alone(case: Case) -> Trained:
    """The same data in one process, micro-batch after micro-batch; or a rank at a time, where ranks were measured."""
    alone = replace(case, wrap=lambda model: model)
    if case.watch.get("small_batches") == "ranks":
        options = {name: value for name, value in case.watch.items() if name != "small_batches"}
        alone = replace(alone, sizes=[[sum(sizes)] for sizes in case.sizes], watch=options, joins=case.sizes)
    return train(alone, range(len(case.sizes)), watched=True)


def gradients_of(case: Case, rank: int) -> list[Tensor]:
    """The gradient of the summed loss over each micro-batch of a rank's first step."""
    model = case.make().to(case.dtype)
    parameters = list(model.parameters())
    found = []
    for inputs, classes in micro_batches(case, 0, rank):
        loss = nn.functional.cross_entropy(model(inputs), classes, reduction="sum")
        found.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)]))
    return found
