"""A training loop that can be watched, and the time of its steps."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.step_overhead.modes import Mode
from benchmarks.step_overhead.sharding import shard
from benchmarks.step_overhead.small_gpt import Size, SmallGPT
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.transport.wire import Measurement, Record

MICRO_BATCHES = 4


class CountingOutbox:
    """Counts measurements in place of sending them: what delivery costs is another benchmark's."""

    is_inherited = False

    def __init__(self) -> None:
        self.num_measurements = 0

    def send(self, record: Record) -> None:
        """Count it if it is a measurement."""
        self.num_measurements += isinstance(record, Measurement)

    def flush(self, timeout_seconds: float) -> bool:
        """Everything has arrived."""
        return True

    def close(self, timeout_seconds: float) -> None:
        """Deliver no record."""


class Training:
    """A small GPT, AdamW, and always the same micro-batches; bf16 by autocast on a GPU, fp32 on a CPU.

    Args:
        size: Of the model.
        tokens: Of a micro-batch; a multiple of the context.
        device: On which it is trained.
        micro_batches: Of a step.
        compiled: Mode of `torch.compile`; "" trains eagerly. On a CPU, which has no graphs, what is traced is run by
            PyTorch's operators: so all but the compiler is tried there.
        make: Makes the model of that size.
        sharded: By FSDP2, over one process.
    """

    def __init__(
        self,
        size: Size,
        tokens: int,
        device: torch.device,
        *,
        micro_batches: int = MICRO_BATCHES,
        compiled: str = "",
        make: Callable[[Size], nn.Module] = SmallGPT,
        sharded: bool = False,
    ) -> None:
        self._device = device
        with device:
            self._model = make(size)
        self._model.to(device)
        self._sharded: Any = None
        if sharded:
            shard(self._model, device)
            self._sharded = self._model
        self._called: Callable[[Tensor], Tensor] = self._model
        self._has_graphs = compiled == "reduce-overhead"
        if compiled:
            how = {"mode": compiled} if device.type == "cuda" else {"backend": "aot_eager"}
            self._called = torch.compile(self._model, **how)
        if self._has_graphs:  # gradients are added to memory of our own: a graph's is overwritten by the next replay
            for parameter in self._model.parameters():
                parameter.grad = torch.zeros_like(parameter)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=True)
        shape = (micro_batches, tokens // size.context, size.context)
        codes = torch.randint(size.vocabulary, shape, device=device)
        self._micro_batches: Sequence[Tensor] = codes.unbind()
        self._batch_size = micro_batches * shape[1]

    @contextmanager
    def watched(self, mode: Mode) -> Iterator[tuple[Run, CountingOutbox]]:
        """A run that watches the model for so long; an error of ours is raised."""
        outbox = CountingOutbox()
        run = Run(Config(strict=True), RunDescription(), lambda run_id, describe: outbox)  # type: ignore[arg-type, return-value]
        try:
            run.watch(self._model, self._optimizer, **mode.options)  # type: ignore[arg-type]
            yield run, outbox
        finally:
            run.finish()

    def seconds(self, run: Run | None, steps: int) -> float:
        """Seconds of so many steps together, until the device has done them."""
        self._wait()
        start = time.perf_counter()
        for _ in range(steps):
            self._step(run)
        self._wait()
        return time.perf_counter() - start

    def _step(self, run: Run | None) -> None:
        """One optimizer step; nothing in it waits for the device."""
        total = torch.zeros((), device=self._device)
        for codes in self._micro_batches:
            if self._sharded is not None:  # gradients are averaged once a step, as jobs that accumulate do
                self._sharded.set_requires_gradient_sync(codes is self._micro_batches[-1])
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
                logits = self._called(codes[:, :-1])
            loss = functional.cross_entropy(logits.float().flatten(0, 1), codes[:, 1:].flatten())
            loss = loss / len(self._micro_batches)
            loss.backward()
            total += loss.detach()
        if run is not None:
            run.log_gradients(loss=total, batch_size=self._batch_size)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=not self._has_graphs)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
