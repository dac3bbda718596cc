"""What else has to hold in a job of two ranks, one function of (rank, num_ranks) for each."""

import contextlib
import gc
import logging
import weakref
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from gloo_training import Case, train
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from client_runs import KeptRecords, flat_gradient, make_batch, make_kept_run, make_model
from noisescale.capture.data_parallel import rank_sums
from noisescale.capture.data_parallel.rank_sums import RankSums, open_group
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.noise_scale import solve_equally_weighted_groups


class Loop:
    """A model in DistributedDataParallel, its optimizer and a run that watches it."""

    def __init__(self, model: nn.Module | None = None, *, strict: bool = True, **watch: Any) -> None:
        self.model = DistributedDataParallel(make_model().double()) if model is None else model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.run: Run
        self.kept: KeptRecords
        self.run, self.kept = make_kept_run(rank=dist.get_rank(), strict=strict)
        self.run.watch(self.model, self.optimizer, **watch)

    def backward(self, seed: int, *, num_examples: int = 4, scale: float = 0.5, synchronises: bool = True) -> Tensor:
        inputs, classes = make_batch(num_examples, seed=seed)
        with contextlib.nullcontext() if synchronises else self.model.no_sync():
            loss = nn.functional.cross_entropy(self.model(inputs.double()), classes)
            (loss * scale).backward()
        return loss.detach()

    def step(self, seed: int) -> None:
        """Two micro-batches, the second synchronised."""
        self.backward(seed, synchronises=False)
        self.backward(seed + 1)
        self.log_and_step()

    def log_and_step(self) -> None:
        self.run.log_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def finish(self) -> list[int]:
        self.run.finish()
        return [row.flags for row in self.kept.rows()]


def sharded() -> nn.Module:
    """Under FSDP2 as one module, in fp64."""
    model = make_model().double()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    model.set_force_sum_reduction_for_comms(True)  # gloo has no average
    return model


def mean_squares_of_ranks(rank: int, num_ranks: int) -> dict[str, Any]:
    """What the test for ranks with other data has seen after one step, and what the gradients themselves say."""
    wraps = {
        "ddp": DistributedDataParallel,
        "ddp in buckets": lambda model: DistributedDataParallel(model, gradient_as_bucket_view=True),
        "fsdp": lambda model: sharded(),
    }
    found = {}
    for name, wrap in wraps.items():
        runs: list[Run] = []
        train(Case([[5, 2], [3, 3]], wrap, num_steps=1), [rank], watched=True, keep=runs.append)
        sums = runs[0]._main._log._ranks.found
        found[name] = (sums.num_steps, sums.between, sums.within)
    return found


def nobody_waits_for_a_late_rank(rank: int, num_ranks: int) -> list[Any]:
    sums = RankSums(open_group(range(num_ranks), "something"), num_ranks)
    if rank == 1:
        dist.barrier()  # rank 0 has passed its `send` and its `advance`
    sent = sums.send(3, torch.tensor([1.0 + rank, 5.0], dtype=torch.float64))
    sums.advance()
    was_there = sent.is_there
    if rank == 0:
        dist.barrier()
    sums.drain()
    return [was_there, sent.values(), sums.num_lost]


def a_sum_of_different_steps_is_lost(rank: int, num_ranks: int) -> list[Any]:
    sums = RankSums(open_group(range(num_ranks), "something"), num_ranks)
    sent = [sums.send(step, torch.ones(2, dtype=torch.float64)) for step in (0, 1 + rank, 2)]
    sums.drain()
    return [[summed.values() for summed in sent], sums.num_lost]


def a_sum_that_others_never_send_is_given_up(rank: int, num_ranks: int) -> list[Any]:
    sums = RankSums(open_group(range(num_ranks), "something"), num_ranks)
    sent = sums.send(0, torch.ones(2, dtype=torch.float64)) if rank == 0 else None
    sums.drain(seconds=0.05)
    lost = sent is not None and sent.is_lost
    dist.barrier()
    if rank == 1:
        sums.send(0, torch.ones(2, dtype=torch.float64))
        sums.drain()
    dist.barrier()
    return [lost, sums.num_lost]


def sums_are_held_after_they_have_arrived(rank: int, num_ranks: int) -> list[bool]:
    all_reduce = dist.all_reduce
    works = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        work = all_reduce(*args, **kwargs)
        works.append(weakref.ref(work))
        return work

    sums = RankSums(open_group(range(num_ranks), "something"), num_ranks)
    with patch.object(dist, "all_reduce", noted):
        for step in range(3):
            sums.send(step, torch.ones(2, dtype=torch.float64))
    sums.drain()
    gc.collect()
    return [work() is not None for work in works]


def ranks_agree_on_a_number(rank: int, num_ranks: int) -> float | None:
    return RankSums(open_group(range(num_ranks), "something"), num_ranks).agree(0, 3.0 + 4 * rank)


def message_of(call: Any) -> str | None:
    try:
        call()
    except ConfigError as error:
        return str(error)
    return None


def a_rank_that_does_not_come_is_named(rank: int, num_ranks: int) -> tuple[list[str], str | None]:
    message = None
    said: list[str] = []
    if rank == 0:
        patient_seconds, rank_sums.PATIENT_SECONDS = rank_sums.PATIENT_SECONDS, 0.1
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
        rank_sums.logger.addHandler(handler)
        message = message_of(lambda: open_group(range(num_ranks), "something", seconds=0.2))
        rank_sums.logger.removeHandler(handler)
        rank_sums.PATIENT_SECONDS = patient_seconds
    dist.barrier()
    if rank == 1:
        for name in rank_sums._num_meetings:
            rank_sums._num_meetings[name] += 1
    return said, message


def ranks_that_watch_different_things_are_told(rank: int, num_ranks: int) -> str | None:
    return message_of(lambda: open_group(range(num_ranks), f"{3 + rank} parameters"))


def shifted_data(rank: int, num_ranks: int) -> dict[str, Any]:
    """One rank sees one class only; in the other run both see the same data."""
    results = {}
    for name, shift in (("same", 0), ("shifted", 1)):
        loop = Loop(log_every=1)
        for group in loop.optimizer.param_groups:
            group["lr"] = 0.0
        for step in range(112):
            for number in range(2):
                inputs, classes = make_batch(4, seed=1000 * step + 10 * number + rank)
                classes = torch.zeros_like(classes) if shift and rank == 1 else classes
                with contextlib.nullcontext() if number else loop.model.no_sync():
                    (nn.functional.cross_entropy(loop.model(inputs.double()), classes) / 2).backward()
            loop.log_and_step()
        results[name] = loop.finish()
    return results


def duplicated_ranks(rank: int, num_ranks: int) -> list[int]:
    loop = Loop()
    for step in range(3):
        loop.backward(step, scale=1.0)  # the same seed on every rank
        loop.log_and_step()
    return loop.finish()


def repeated_ranks(rank: int, num_ranks: int) -> list[int]:
    """Three different micro-batches a step, the same ones on every rank."""
    loop = Loop(log_every=1)
    for step in range(20):
        for number in range(3):
            loop.backward(10 * step + number, scale=1 / 3, synchronises=number == 2)
        loop.log_and_step()
    return loop.finish()


def hooks_of(model: nn.Module) -> int:
    on_parameters = [
        len(p._backward_hooks or {}) + len(p._post_accumulate_grad_hooks or {}) for p in model.parameters()
    ]
    on_modules = [len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.modules()]
    return sum(on_parameters) + sum(on_modules)


def unwatching_leaves_no_hook(rank: int, num_ranks: int) -> dict[str, Any]:
    found = {}
    for name, in_buckets in (("ddp", False), ("ddp in buckets", True)):
        model = DistributedDataParallel(make_model().double(), gradient_as_bucket_view=in_buckets)
        before, keys = hooks_of(model), list(model.state_dict())
        loop = Loop(model)
        during = hooks_of(model)
        loop.step(rank)
        loop.finish()
        found[name] = (hooks_of(model) - before, during > before, list(model.state_dict()) == keys)
    for name, options in (("fsdp", {}), ("fsdp by rank", {"small_batches": "ranks"})):
        model = sharded()
        before, (group,) = hooks_of(model), model._get_fsdp_state()._fsdp_param_groups
        reduce_scatter = group._reduce_scatter_comm
        loop = Loop(model, **options)
        during = hooks_of(model) > before
        loop.backward(rank)
        leaves = [fsdp_param._unsharded_param for fsdp_param in group.fsdp_params]
        during &= all(leaf._backward_hooks for leaf in leaves)
        loop.log_and_step()
        loop.finish()
        left = (
            hooks_of(model)
            - before
            + sum(len(leaf._backward_hooks or {}) + len(leaf._post_accumulate_grad_hooks or {}) for leaf in leaves)
        )
        found[name] = (left, during, group._reduce_scatter_comm is reduce_scatter)
    return found


def whole(model: nn.Module) -> Tensor:
    """All parameters as one vector, shards put together."""
    parts = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
    return torch.cat([part.detach().double().flatten() for part in parts])


def paths_of_the_updates(rank: int, num_ranks: int) -> dict[str, Any]:
    """Of each rank the path after 8 steps, each of which is looked at, and what whole parameters and rows say."""
    found = {}
    for name, model in (("ddp", DistributedDataParallel(make_model().double())), ("fsdp", sharded())):
        loop = Loop(model)
        start = before = whole(model)
        total = 0.0
        for index in range(8):
            loop.backward(100 * rank + index)
            loop.log_and_step()
            now = whole(model)
            total += float((now - before).square().sum())
            before = now
        loop.run.unwatch()
        path = loop.run._main._log.path.path
        signal = sum(row.sum_grad_sq_norm for row in loop.kept.rows())
        found[name] = (path, total, float((before - start).square().sum()), 0.05 * signal, loop.run.faults.count)
    return found


def uneven_inputs(rank: int, num_ranks: int) -> list[Any]:
    """Inside `join()` ranks make different numbers of steps."""
    loop = Loop()
    loop.step(rank)
    with loop.model.join():
        for step in range(2 + rank):
            loop.backward(10 * step + rank)
            loop.log_and_step()
    flags = loop.finish()
    return [flags, loop.run.faults.count, loop.run._main.watch is None]


def ranks_of_two_sizes(rank: int, num_ranks: int) -> list[Any]:
    """12 examples on one rank and 4 on the other, whose mean losses are averaged as they are; nobody has said so."""
    loop = Loop()
    truth = (0.0, 0.0)
    for step in range(40):
        means = []
        twin = make_model().double()  # gradients asked for of the watched one would count
        twin.load_state_dict(loop.model.module.state_dict())
        for other, size in enumerate((12, 4)):
            inputs, classes = make_batch(size, seed=10 * step + other)
            loss = nn.functional.cross_entropy(twin(inputs.double()), classes)
            means.append(flat_gradient(loss, list(twin.parameters())))
        small, big = sum(float(m @ m) for m in means) / 2, float(sum(means) @ sum(means)) / 4
        truth = solve_equally_weighted_groups(small, big, 2, (1 / 12 + 1 / 4) / 2)
        loop.backward(10 * step + rank, num_examples=12 if rank == 0 else 4, scale=1.0)
        loop.log_and_step()
    loop.finish()
    rows = loop.kept.rows()
    return [
        [(row.sum_trace_cov, row.sum_grad_sq_norm, row.flags) for row in (rows[0], rows[-1])] if rows else [],
        truth,
    ]


def a_watch_after_a_forward_sees_the_shards(rank: int, num_ranks: int) -> list[Any]:
    """FSDP2 leaves the root's parameters unsharded after a forward."""
    model = sharded()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model(make_batch(4)[0].double())
    run, kept = make_kept_run(rank=rank)
    run.watch(model, optimizer)
    for number in range(2):
        inputs, classes = make_batch(4, seed=10 * rank + number)
        model.set_requires_gradient_sync(number == 1)
        (nn.functional.cross_entropy(model(inputs.double()), classes) / 2).backward()
    run.log_gradients()
    run.finish()
    return [(row.flags, row.num_micro_batches) for row in kept.rows()]


def the_wrapped_model_is_recognised(rank: int, num_ranks: int) -> list[Any]:
    inner = make_model().double()
    wrapper = DistributedDataParallel(inner)
    loop = Loop(inner)
    for number in range(2):
        inputs, classes = make_batch(4, seed=10 * rank + number)
        with contextlib.nullcontext() if number else wrapper.no_sync():
            (nn.functional.cross_entropy(wrapper(inputs.double()), classes) / 2).backward()
    loop.log_and_step()
    flags = loop.finish()
    return [flags, [row.num_micro_batches for row in loop.kept.rows()]]


def a_plain_model_is_measured_alone(rank: int, num_ranks: int) -> list[Any]:
    loop = Loop(make_model().double())
    notes = loop.run._main._stream.notes
    for number in range(2):
        loop.backward(10 * rank + number)
    loop.log_and_step()
    flags = loop.finish()
    return [flags, [row.num_micro_batches for row in loop.kept.rows()], notes]


def refusals(rank: int, num_ranks: int) -> dict[str, str | None]:
    mesh = init_device_mesh("cpu", (num_ranks,))
    tensor_parallel = make_model().double()
    weight = distribute_tensor(tensor_parallel[0].weight.detach(), mesh, [Shard(0)])
    tensor_parallel[0].weight = nn.Parameter(weight)
    partly_sharded = make_model().double()
    fully_shard(partly_sharded[0], mesh=mesh)
    models = {
        "FSDP1": FullyShardedDataParallel(make_model(), device_id=torch.device("cpu")),
        "DataParallel": nn.DataParallel(make_model()),
        "tensor parallel": tensor_parallel,
        "partly sharded": partly_sharded,
    }
    run, _ = make_kept_run()
    found = {name: message_of(lambda model=model: run.watch(model)) for name, model in models.items()}
    found["ranks of one"] = message_of(lambda: run.watch(make_model(), small_batches="ranks"))
    found["kinds"] = message_of(lambda: Loop(kinds=["sign"]))
    found["examples of shards"] = message_of(lambda: Loop(sharded(), small_batches="per_example"))
    return found


def a_fault_of_one_rank_costs_one_step(rank: int, num_ranks: int) -> list[Any]:
    loop = Loop(strict=False)
    loop.step(rank)
    accumulation = loop.run._main.watch._accumulation
    take = accumulation.take_small_batches
    if rank == 1:
        accumulation.take_small_batches = lambda: take()[5]
    loop.step(10 + rank)
    accumulation.take_small_batches = take
    loop.step(20 + rank)
    return [loop.finish(), [row.sum_trace_cov is None for row in loop.kept.rows()], loop.run.faults.count]


def gradients_that_are_never_averaged(rank: int, num_ranks: int) -> list[int]:
    loop = Loop()
    for number in range(2):
        loop.backward(10 * rank + number, synchronises=False)
    loop.log_and_step()
    return loop.finish()


def ignored_backwards(rank: int, num_ranks: int) -> list[Any]:
    """What is ignored stays in p.grad, unless it is cleared: then the step is whole."""
    loop = Loop()
    with loop.run.ignore():
        loop.backward(7, synchronises=False)
    loop.step(rank)
    with loop.run.ignore():
        loop.backward(8)
    loop.optimizer.zero_grad()
    loop.step(10 + rank)
    return loop.finish()


def a_loss_scaler(rank: int, num_ranks: int) -> dict[str, list[float | None]]:
    terms = {}
    for name, scale in (("plain", None), ("scaled", 1024.0), ("unscaled", 1024.0)):
        scaler = None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale)
        loop = Loop(scaler=scaler)
        for step in range(2):
            for number in range(2):
                inputs, classes = make_batch(4, seed=100 * step + 10 * rank + number)
                with contextlib.nullcontext() if number else loop.model.no_sync():
                    loss = nn.functional.cross_entropy(loop.model(inputs.double()), classes) / 2
                    (loss if scaler is None else scaler.scale(loss)).backward()
            if scaler is not None and name == "unscaled":
                scaler.unscale_(loop.optimizer)
            loop.run.log_gradients()
            if scaler is None:
                loop.optimizer.step()
            else:
                scaler.step(loop.optimizer)
                scaler.update()
            loop.optimizer.zero_grad()
        loop.finish()
        terms[name] = [term for row in loop.kept.rows() for term in (row.sum_trace_cov, row.sum_grad_sq_norm)]
    return terms


def every_second_step(rank: int, num_ranks: int) -> list[Any]:
    loop = Loop(every=2)
    for step in range(5):
        loop.step(10 * step + rank)
    flags = loop.finish()
    return [flags, [row.num_updates for row in loop.kept.rows() if row.sum_trace_cov is not None]]


def a_budget_is_agreed_upon(rank: int, num_ranks: int) -> list[Any]:
    """The ranks find different costs, and measure the same steps."""
    loop = Loop(overhead=0.05)
    duty = loop.run._main.watch.duty
    duty._clock = iter(range(1000)).__next__  # a step takes a second
    num_steps = 0
    while duty.is_timing and num_steps < 100:
        duty.add_cost((0.2 + 0.4 * rank) * duty.is_measured())
        loop.step(10 * num_steps + rank)
        num_steps += 1
    return [duty.every, num_steps, duty.timing.every(duty.budget), sum(loop.finish())]


def sizes_on_the_device(rank: int, num_ranks: int) -> list[list[float | None]]:
    terms = []
    for late in (False, True):
        loop = Loop()
        for number, size in enumerate((5, 2 + rank)):
            inputs, classes = make_batch(size, seed=10 * rank + number)
            with (
                contextlib.nullcontext() if number else loop.model.no_sync(),
                loop.run.micro_batch(torch.tensor(float(size)) if late else size),
            ):
                output = loop.model(inputs.double())
                (nn.functional.cross_entropy(output, classes, reduction="sum") * 2 / 15).backward()
        loop.log_and_step()
        loop.finish()
        terms.append(
            [t for row in loop.kept.rows() for t in (row.sum_trace_cov, row.sum_grad_sq_norm, row.global_batch)]
        )
    return terms


def clipping_keeps_ranks_together(rank: int, num_ranks: int) -> Tensor:
    loop = Loop()
    loop.backward(rank, scale=10.0)
    if rank == 0:
        loop.run.log_gradients()
    loop.run.clip_grad_norm_(0.1)
    loop.finish()
    return torch.cat([p.grad.flatten() for p in loop.model.parameters()])


def sixteen_bit_leaves(rank: int, num_ranks: int) -> list[Any]:
    """FSDP2 computes in bf16 and sums in fp32: norms of those very gradients, summed in fp64."""
    model = make_model()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    fully_shard(model, mesh=init_device_mesh("cpu", (num_ranks,)), mp_policy=policy)
    model.set_force_sum_reduction_for_comms(True)
    model(make_batch(4)[0])  # now there are unsharded parameters to look at
    model.reshard()
    seen: list[Tensor] = []
    (group,) = model._get_fsdp_state()._fsdp_param_groups
    for fsdp_param in group.fsdp_params:
        fsdp_param._unsharded_param.register_hook(lambda gradient: seen.append(gradient.double().square().sum()))
    loop = Loop(model)
    for number in range(2):
        inputs, classes = make_batch(4, seed=10 * rank + number)
        model.set_requires_gradient_sync(number == 1)
        (nn.functional.cross_entropy(model(inputs).float(), classes) / 2).backward()
    small = torch.stack(seen).sum() / num_ranks**2
    dist.all_reduce(small)
    big = sum(p.grad.full_tensor().double().square().sum() for p in model.parameters())
    loop.log_and_step()
    loop.finish()
    rows = loop.kept.rows()
    trace_cov = float(16 * (4 * small - big) / 3)
    return [[(row.sum_trace_cov, row.sum_grad_sq_norm) for row in rows], (trace_cov, float(big) - trace_cov / 16)]


BEHAVIOUR = [
    mean_squares_of_ranks,
    nobody_waits_for_a_late_rank,
    a_sum_of_different_steps_is_lost,
    a_sum_that_others_never_send_is_given_up,
    sums_are_held_after_they_have_arrived,
    ranks_agree_on_a_number,
    a_rank_that_does_not_come_is_named,
    ranks_that_watch_different_things_are_told,
    shifted_data,
    duplicated_ranks,
    repeated_ranks,
    unwatching_leaves_no_hook,
    paths_of_the_updates,
    uneven_inputs,
    ranks_of_two_sizes,
    a_watch_after_a_forward_sees_the_shards,
    the_wrapped_model_is_recognised,
    a_plain_model_is_measured_alone,
    refusals,
    a_fault_of_one_rank_costs_one_step,
    gradients_that_are_never_averaged,
    ignored_backwards,
    a_loss_scaler,
    every_second_step,
    a_budget_is_agreed_upon,
    sizes_on_the_device,
    clipping_keeps_ranks_together,
    sixteen_bit_leaves,
]

SCENARIOS = {scenario.__name__: scenario for scenario in BEHAVIOUR}
