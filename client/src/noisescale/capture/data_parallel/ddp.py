"""DistributedDataParallel: leaf hooks see R s_k before the reducer averages over the R ranks.

The reducer's communicator and a user's communication hook are left alone; ours only reads the hook's name.
"""

import functools
import logging
from collections.abc import Mapping, Sequence

import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from noisescale.capture.data_parallel.averaging_check import AveragingCheck, chosen
from noisescale.capture.data_parallel.job import RemovableHandle, SeeGradient, leaf_handles
from noisescale.capture.data_parallel.own_gradient import OwnGradient
from noisescale.capture.data_parallel.rank_sums import RankSums, open_group
from noisescale_core.errors import ConfigError

logger = logging.getLogger("noisescale")

LOSSY_HOOKS = ("compress", "powersgd", "quantization")
"""Parts of the names of PyTorch's communication hooks that lose digits."""

LOOK_EVERY = 4
"""Synchronised backward passes per look at the rank's own gradient: one more pass over the gradients."""

LOOK_EVERY_IN_BUCKETS = 16
"""The same where gradients lie in the buckets: there DDP divides each as soon as it is accumulated."""


class DdpJob:
    """A `DistributedDataParallel` model; see `DataParallelJob` for the attributes.

    Args:
        ddp: The wrapper.
        parameters: Those watched, by name.
        is_by_rank: Look at each rank's own gradient only, in every synchronised backward.

    Raises:
        ConfigError: For ways of using it that cannot be measured, or where other ranks do not come.
    """

    name = "ddp"
    has_shards = False

    def __init__(
        self, ddp: DistributedDataParallel, parameters: Mapping[str, Tensor], *, is_by_rank: bool = False
    ) -> None:
        refuse_unsupported(ddp, parameters)
        self._ddp = ddp
        self.is_by_rank = is_by_rank
        self._parameters = list(parameters.values())
        self.num_ranks = ddp.process_group.size()
        self.is_first = ddp.process_group.rank() == 0
        self.sums: RankSums | None = None
        if self.num_ranks > 1:
            ranks = dist.get_process_group_ranks(ddp.process_group)
            group = open_group(ranks, f"{len(parameters)} parameters with DistributedDataParallel")
            self.sums = RankSums(group, self.num_ranks)
        hook = ddp._get_ddp_logging_data().get("comm_hook")
        self.notes: Sequence[str] = [f"communication hook {hook}"] if hook else []
        self.is_compressed = any(part in str(hook).lower() for part in LOSSY_HOOKS)
        self._is_in_buckets = bool(ddp.gradient_as_bucket_view)
        self._own = OwnGradient(len(parameters))
        self._lying_in_buckets: set[int] | None = None
        self._check = AveragingCheck(chosen(self._parameters))
        # In the first backward of a static graph all is averaged before our callback, in the memory that we hold.
        self.is_blind = bool(ddp.static_graph) and not ddp._static_graph_delay_allreduce_enqueued
        self._num_synchronised = 0
        self._is_expecting = False
        self._has_said_join = False
        self._handles: list[RemovableHandle] = []

    @property
    def averages_over(self) -> float:
        """R."""
        return float(self.num_ranks)

    def arm(self, hooks: Sequence[SeeGradient]) -> None:
        """The parameters' own hooks come before the reducer, and so do those behind the accumulation."""
        self._is_expecting = False
        self._handles = leaf_handles(self._parameters, hooks)
        if self.num_ranks == 1:
            return
        self._handles += [
            parameter.register_post_accumulate_grad_hook(functools.partial(self._check.see, number))
            for number, parameter in enumerate(self._check.parameters)
            if parameter.requires_grad
        ]
        if self._is_in_buckets:
            self._handles += [
                p.register_post_accumulate_grad_hook(functools.partial(self._see_accumulated, index))
                for index, p in enumerate(self._parameters)
                if p.requires_grad
            ]

    def disarm(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def see_forward(self) -> None:
        """Note whether the reducer will average: it decides at the forward, not at the backward."""
        self._is_expecting |= self.num_ranks > 1 and bool(self._ddp.require_backward_grad_sync)
        self._own.is_wanted = self._is_expecting and self._is_looking()
        self._lying_in_buckets = None

    def is_synchronising(self) -> bool:
        """False from `join()` on: PyTorch does not tell when it is over."""
        is_joining = self._ddp._join_config.enable
        if is_joining and not self._has_said_join:
            self._has_said_join = True
            logger.warning("inside join() and after it ranks may make different numbers of steps: nothing is measured")
        is_synchronising = self._is_expecting and not is_joining
        self.is_blind &= not self._is_expecting
        self._is_expecting = False
        self._num_synchronised += is_synchronising
        return is_synchronising

    def _is_looking(self) -> bool:
        every = LOOK_EVERY_IN_BUCKETS if self._is_in_buckets else LOOK_EVERY
        return self.is_by_rank or self._num_synchronised % every == 0

    def _see_accumulated(self, index: int, parameter: Tensor) -> None:
        if not self._own.is_wanted:
            return
        if self._lying_in_buckets is None:
            # One that was cleared lies elsewhere: DDP copies it into its bucket, and it may be read later with others.
            self._lying_in_buckets = {i for i, p in enumerate(self._parameters) if p.grad is not None}
        self._own.see(index, parameter.grad, is_overwritten=index in self._lying_in_buckets)

    def own_sq_norms(self) -> Tensor | None:
        """Of each parameter; None where this backward is not looked at."""
        if not self._is_in_buckets and self._is_expecting:
            for index, parameter in enumerate(self._parameters):
                self._own.see(index, parameter.grad)
        return self._own.take()

    def averaging_values(self) -> Tensor | None:
        """Elements before and after."""
        return self._check.values()

    def local_gradients(self) -> list[Tensor | None]:
        """Every rank holds the whole gradient."""
        return [p.grad for p in self._parameters]

    def shares(self) -> Sequence[float]:
        """Every rank holds the same."""
        return [1 / self.num_ranks] * len(self._parameters)


def refuse_unsupported(ddp: DistributedDataParallel, parameters: Mapping[str, Tensor]) -> None:
    """Raise for what would give wrong numbers.

    Raises:
        ConfigError: With the way out.
    """
    if getattr(ddp, "_use_python_reducer", False):
        raise ConfigError(
            "DDP's python_reducer is not supported: set torch._dynamo.config.optimize_ddp = 'ddp_optimizer', the "
            "default, before wrapping the model"
        )
    if getattr(ddp, "mixed_precision", None) is not None:
        raise ConfigError("DDP(mixed_precision=...) is not supported yet: use torch.autocast instead")
    left_out = [name for name, parameter in parameters.items() if hasattr(parameter, "_ddp_ignored")]
    if left_out:
        raise ConfigError(f"DDP ignores {left_out[0]}, so its gradient differs from rank to rank: freeze it, or sum it")
