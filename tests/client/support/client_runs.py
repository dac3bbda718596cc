"""Runs that keep their records instead of sending them, small models, and the truth about their gradients."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.transport.wire import GroupRecord, Measurement, MetricRecord, Record, RunRecord

torch.set_num_threads(1)


class KeptRecords:
    """Stands in for `outbox.Outbox`."""

    is_inherited = False

    def __init__(self, describe: Callable[[], RunRecord] | None = None) -> None:
        self.records: list[Record] = []
        self.is_closed = False
        self.describe = describe
        self.others: dict[tuple[str, int], KeptRecords] = {}  # by run id, in the order of opening
        self.let_come: Callable[[], None] = lambda: None  # steps of a small model are held for a moment

    def send(self, record: Record) -> None:
        self.records.append(record)

    def flush(self, timeout_seconds: float) -> bool:
        return True

    def close(self, timeout_seconds: float) -> None:
        self.is_closed = True

    def rows(self) -> list[Measurement]:
        self.let_come()
        return [record for record in self.records if isinstance(record, Measurement)]

    def of_kind(self, kind: str) -> "KeptRecords":
        """Where the records of a further kind went."""
        return next(kept for kept in self.others.values() if kept.describe().stream["kind"] == kind)

    def groups(self) -> list[GroupRecord]:
        self.let_come()
        return [record for record in self.records if isinstance(record, GroupRecord)]

    def metrics(self) -> list[MetricRecord]:
        return [record for record in self.records if isinstance(record, MetricRecord)]


def make_kept_run(*, strict: bool = True, **settings: object) -> tuple[Run, KeptRecords]:
    """A run and where its records go."""
    kept = KeptRecords()
    fields = ("example", "unit", "units_per_example", "planned_steps")
    described = {name: settings.pop(name) for name in fields if name in settings}
    mirror = settings.pop("mirror", None)
    opened: list[KeptRecords] = []

    def open_outbox(run_id: str, describe: Callable[[], RunRecord]) -> KeptRecords:
        """The first one is the run's own; the others are kept by run and kind."""
        if not opened:
            opened.append(kept)
            return kept
        return kept.others.setdefault((run_id, len(kept.others)), KeptRecords(describe))

    run = Run(Config(strict=strict, **settings), RunDescription(**described), open_outbox, mirror=mirror)
    kept.let_come = run._main.collect
    return run, kept


def make_model(seed: int = 0) -> nn.Sequential:
    """Two linear layers and a normalisation, 4 inputs, 3 classes."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3))


def make_batch(num_examples: int = 16, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Inputs [B, 4] and classes [B]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_examples, 4, generator=generator), torch.randint(0, 3, (num_examples,), generator=generator)


def gradient_of_each(model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
    """One backward per example: name -> [B, ...]."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    rows = [
        torch.autograd.grad(nn.functional.cross_entropy(model(x[None]), y[None]), parameters)
        for x, y in zip(inputs, classes, strict=True)
    ]
    return {name: torch.stack([row[i] for row in rows]).double() for i, name in enumerate(names)}


def brute_force_terms(gradients: Sequence[Tensor], sizes: Sequence[int]) -> tuple[float, float]:
    """tr Σ and |G|² from per-example gradients [B, ...] of some parameters, split into groups of these sizes."""
    flat = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)
    return terms_of_means([part.mean(0) for part in flat.split(list(sizes))], sizes)


def terms_of_means(means: Sequence[Tensor], sizes: Sequence[float]) -> tuple[float, float]:
    """tr Σ and |G|² from the mean gradients of small batches of these sizes, each as one vector.

    |G|² is the mean of g_j · g_k over all pairs of examples j, k of different groups.
    """
    total = sum(sizes)
    whole = sum(size / total * mean.double() for size, mean in zip(sizes, means, strict=True))
    weighted = sum(size / total * mean.double() @ mean.double() for size, mean in zip(sizes, means, strict=True))
    trace_cov = total * (weighted - whole @ whole) / (len(sizes) - 1)
    own = sum((size / total) ** 2 * mean.double() @ mean.double() for size, mean in zip(sizes, means, strict=True))
    own_share = sum((size / total) ** 2 for size in sizes)
    return float(trace_cov), float((whole @ whole - own) / (1 - own_share))


def flat_gradient(loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """The gradient of a loss as one vector, with zeros where a parameter is not used."""
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g.to_dense()).flatten().double()
            for p, g in zip(parameters, gradients, strict=True)
        ]
    )


def terms_of(row: Measurement) -> tuple[float, float]:
    """tr Σ and |G|² of a row of one update."""
    assert row.num_updates == 1
    return row.sum_trace_cov, row.sum_grad_sq_norm
