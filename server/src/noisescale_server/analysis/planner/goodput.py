"""Goodput: examples a second, times what an example at this batch is worth; and the batch at which it is largest.

efficiency(B) = (φ + B0) / (φ + B), the progress of an example relative to one at the base batch B0.
Source: Qiao et al. 2021 (Pollux, OSDI), section 3.1; as in the code of petuum/adaptdl.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_server.analysis.planner.throughput import Placement, StepTimes

NUM_CANDIDATES = 50
"""Batch sizes that the search tries, in equal ratios."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """A way of running a step, and what it yields.

    Attributes:
        micro_batch: m, examples of a micro-batch on a device.
        num_extra: s, micro-batches accumulated before the one that is synchronised.
        batch: B = n m (s + 1), in examples.
        examples_per_second: Throughput.
        efficiency: Progress per example relative to the base batch, above 1 below it.
        goodput: Their product, base examples a second.
    """

    micro_batch: int
    num_extra: int
    batch: int
    examples_per_second: float
    efficiency: float
    goodput: float


def efficiency(*, batch: float, base_batch: float, noise_scale: float) -> float:
    """(φ + B0) / (φ + B): progress per example at B relative to one at B0.

    Args:
        batch: B in examples.
        base_batch: B0 in examples.
        noise_scale: φ in examples; 0 and infinity are its limits.

    Raises:
        DomainError: If a batch is not positive or the noise scale negative.
    """
    require_positive("a batch holds at least one example", batch=batch, base_batch=base_batch)
    require_not_negative("an unresolved noise scale has a bound, no value", noise_scale=noise_scale)
    return 1.0 if noise_scale == math.inf else (noise_scale + base_batch) / (noise_scale + batch)


def best_goodput(
    times: StepTimes,
    placement: Placement,
    *,
    base_batch: float,
    noise_scale: float,
    max_batch: float,
    max_micro_batch: int,
    may_accumulate: bool = True,
) -> Goodput:
    """The batch of largest goodput on given devices, from the base batch to a largest one.

    Tries 50 batches in equal ratios. Each is shared by the devices, rounded up, and split into as few micro-batches as
    memory allows.

    Args:
        times: How long a step takes.
        placement: On how many devices.
        base_batch: B0, the smallest batch to try, in examples.
        noise_scale: φ in examples.
        max_batch: The largest batch to try, in examples.
        max_micro_batch: The largest micro-batch that a device holds, in examples.
        may_accumulate: Whether a step may have several micro-batches.

    Raises:
        DomainError: If the range is empty, or no batch in it fits on the devices.
    """
    require_positive("find it by trying", max_micro_batch=max_micro_batch)
    if not 0 < base_batch <= max_batch < math.inf:
        raise DomainError(f"max_batch must be at least base_batch, got {max_batch:g} and {base_batch:g}: raise it")
    ratio = max_batch / base_batch
    found: list[Goodput] = []
    for position in range(NUM_CANDIDATES):
        wanted = base_batch * math.pow(ratio, position / (NUM_CANDIDATES - 1))
        # one part in 10^9 less: a batch that divides evenly must not be rounded up for a rounding error
        share = max(1, math.ceil(wanted * (1 - 1e-9) / placement.num_devices))
        num_extra = math.ceil(share / max_micro_batch) - 1
        micro_batch = math.ceil(share / (num_extra + 1))
        is_allowed = num_extra == 0 or may_accumulate
        if is_allowed and placement.num_devices * micro_batch * (num_extra + 1) <= max_batch:
            found.append(_at(times, placement, micro_batch, num_extra, base_batch, noise_scale))
    if not found:
        raise DomainError(
            f"max_batch must leave room for whole micro-batches of at most {max_micro_batch} on "
            f"{placement.num_devices} devices, got {max_batch:g}: raise it or allow accumulation"
        )
    return max(found, key=lambda way: way.goodput)


def _at(
    times: StepTimes, placement: Placement, micro_batch: int, num_extra: int, base_batch: float, noise_scale: float
) -> Goodput:
    batch = placement.num_devices * micro_batch * (num_extra + 1)
    speed = times.examples_per_second(micro_batch, placement, num_extra=num_extra)
    share = efficiency(batch=batch, base_batch=base_batch, noise_scale=noise_scale)
    return Goodput(micro_batch, num_extra, batch, speed, share, speed * share)
