"""Small watched trainings on a device, and how far tr Σ and |G|² are off from gradients that are kept in fp64."""

# K micro-batches of B examples

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from client_runs import make_kept_run, terms_of, terms_of_means
from noisescale.options import Arithmetic

MICRO_BATCHES, EXAMPLES, POSITIONS, WIDTH, CLASSES = 4, 8, 65, 96, 33
"""No multiple of a tile anywhere."""


@dataclass(frozen=True)
class Case:
    """A way to train and to watch.

    Attributes:
        options: Of `Run.watch()`.
        autocast: Type of the forward; None: fp32.
        compiled: Mode of `torch.compile`; None: not compiled.
        scale: Of the loss, as a GradScaler's; None: none is used.
        per_example: One backward, whose examples are the small batches.
        limit: What the error may be at most; a compiled forward rounds to bf16 elsewhere than the plain one beside it.
        runs_without_gpu: Whether a CPU shows the same.
    """

    options: dict[str, Any] = field(default_factory=dict)
    autocast: torch.dtype | None = None
    compiled: str | None = None
    scale: float | None = None
    per_example: bool = False
    limit: float = 2e-5
    runs_without_gpu: bool = False


WATCHED = {
    "micro-batches": Case(runs_without_gpu=True),
    "micro-batches, autocast to bf16": Case(autocast=torch.bfloat16),
    "micro-batches, added up in 32 bit": Case({"arithmetic": Arithmetic(accumulate="fp32")}),
    "micro-batches, fp16 with a GradScaler": Case(autocast=torch.float16, scale=4096.0),
    "compiled": Case(autocast=torch.bfloat16, compiled="default", limit=3e-2),
    "compiled into CUDA graphs": Case(autocast=torch.bfloat16, compiled="reduce-overhead", limit=3e-2),
    "compiled into CUDA graphs, added up in 32 bit": Case(
        {"arithmetic": Arithmetic(accumulate="fp32")}, autocast=torch.bfloat16, compiled="reduce-overhead", limit=3e-2
    ),
    "per-example norms": Case({"small_batches": "per_example"}, per_example=True, limit=1e-3),
    "per-example norms, autocast to bf16": Case(
        {"small_batches": "per_example"}, autocast=torch.bfloat16, per_example=True, limit=2e-2
    ),
}


class Net(nn.Module):
    """Positions in, one class an example out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(CLASSES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 5 * WIDTH), nn.Linear(5 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, codes: Tensor) -> Tensor:
        """[B, T] → [B, classes]."""
        x = self.embed(codes)
        x = x + self.down(functional.gelu(self.up(self.norm(x))))
        return self.head(x).mean(1)


def watched_error(case: Case, device: str, steps: int = 5) -> float:
    """The largest error of both terms, as a share of what they are made of, over all steps that have terms.

    Args:
        case: What is trained.
        device: Where.
        steps: In all; the first ones only prove what layers contribute.

    Raises:
        ValueError: No step has terms.
    """
    torch.manual_seed(0)
    model = Net().to(device)
    twin = copy.deepcopy(model)
    called: Callable[[Tensor], Tensor] = model if case.compiled is None else torch.compile(model, mode=case.compiled)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = None if case.scale is None else torch.amp.GradScaler(device, init_scale=case.scale)
    has_graphs = case.compiled == "reduce-overhead"
    for parameter in model.parameters() if has_graphs else ():
        parameter.grad = torch.zeros_like(parameter)  # a graph's own memory is overwritten by the next replay
    run, kept = make_kept_run()
    run.watch(model, optimizer, scaler=scaler, **case.options)
    errors = []
    for _ in range(steps):
        batches = 1 if case.per_example else MICRO_BATCHES
        codes = torch.randint(CLASSES, (batches, EXAMPLES, POSITIONS), device=device)
        classes = torch.randint(CLASSES, (batches, EXAMPLES), device=device)
        twin.load_state_dict(model.state_dict())
        means = _means(case, twin, codes, classes)
        for x, y in zip(codes, classes, strict=True):
            loss = _loss(case, called, x, y) / len(codes)
            (loss if scaler is None else scaler.scale(loss)).backward()
        run.log_gradients(batch_size=batches * EXAMPLES)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad(set_to_none=not has_graphs)
        row = kept.rows()[-1]
        if row.sum_trace_cov is not None:
            errors.append(_error(terms_of(row), means, 1.0 if case.per_example else float(EXAMPLES)))
    run.finish()
    if not errors:
        raise ValueError("the run has measured nothing")
    return max(errors)


def _error(found: tuple[float, float], means: list[Tensor], examples: float) -> float:
    trace_cov, grad_sq_norm = terms_of_means(means, [examples] * len(means))
    noise = trace_cov / (examples * len(means))
    return max(abs(found[0] / trace_cov - 1), abs(found[1] - grad_sq_norm) / (noise + abs(grad_sq_norm)))


def _loss(case: Case, called: Callable[[Tensor], Tensor], codes: Tensor, classes: Tensor) -> Tensor:
    with torch.autocast(codes.device.type, case.autocast or torch.bfloat16, enabled=case.autocast is not None):
        logits = called(codes)
    return functional.cross_entropy(logits.float(), classes)


def _means(case: Case, twin: nn.Module, codes: Tensor, classes: Tensor) -> list[Tensor]:
    """The mean gradient of each small batch as one vector in fp64, by a model that nobody watches."""
    if case.per_example:
        codes, classes = codes[0].unsqueeze(1), classes[0].unsqueeze(1)
    parameters = list(twin.parameters())
    scale = case.scale or 1.0
    means = []
    for x, y in zip(codes, classes, strict=True):
        gradients = torch.autograd.grad(_loss(case, twin, x, y) * scale, parameters)
        means.append(torch.cat([g.double().flatten() for g in gradients]) / scale)
    return means
