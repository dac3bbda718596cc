"""How long a step takes on a number of devices, and how many examples a second that is.

T_acc = a_c + b_c m for one micro-batch of m examples on a device; T_net = a + b max(n - 2, 0) for adding the gradients
of n devices, with other constants between nodes than inside one, and 0 on a single device. Both overlap in part:
T_step = (T_acc^γ + T_net^γ)^(1/γ), γ = 1 without overlap, large with nearly complete overlap. A step with s extra
micro-batches takes s T_acc + T_step.
Source: Qiao et al. 2021 (Pollux, OSDI), section 3.2; as in the code of petuum/adaptdl.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_not_negative, require_positive

MOST_OVERLAP = 10.0
"""Beyond it γ makes no difference that can be measured."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a step runs.

    Attributes:
        num_devices: Data-parallel devices, n.
        num_nodes: Machines that hold them.
    """

    num_devices: int = 1
    num_nodes: int = 1

    def __post_init__(self) -> None:
        """Refuse what holds no devices.

        Raises:
            DomainError: Unless 1 ≤ num_nodes ≤ num_devices.
        """
        if not 1 <= self.num_nodes <= self.num_devices:
            raise DomainError(
                f"num_nodes must lie between 1 and num_devices, got {self.num_nodes} and {self.num_devices}: "
                "each node holds at least one data-parallel device"
            )


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The seven constants of a step's time; seconds, or seconds per example or device.

    Attributes:
        compute_overhead: a_c, seconds of a micro-batch besides its examples.
        compute_per_example: b_c, seconds.
        node_overhead: a_r, seconds to add gradients inside a node.
        node_per_device: b_r, seconds for each device beyond the second.
        network_overhead: a_n, seconds to add gradients between nodes.
        network_per_device: b_n, seconds for each device beyond the second.
        overlap: γ, between 1 and 10.
    """

    compute_overhead: float
    compute_per_example: float
    node_overhead: float = 0.0
    node_per_device: float = 0.0
    network_overhead: float = 0.0
    network_per_device: float = 0.0
    overlap: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what takes no time.

        Raises:
            DomainError: If a time is negative, an example takes none, or γ is out of range.
        """
        require_positive("fit it to measured step times", compute_per_example=self.compute_per_example)
        require_not_negative(
            "fit it to measured step times",
            compute_overhead=self.compute_overhead,
            node_overhead=self.node_overhead,
            node_per_device=self.node_per_device,
            network_overhead=self.network_overhead,
            network_per_device=self.network_per_device,
        )
        if not 1 <= self.overlap <= MOST_OVERLAP:
            raise DomainError(f"overlap must be between 1 and 10, got {self.overlap:g}: 1 means none")

    def accumulation_seconds(self, examples: float) -> float:
        """T_acc of one micro-batch on one device.

        Args:
            examples: m, examples in the micro-batch.

        Raises:
            DomainError: If there are none.
        """
        require_positive("a micro-batch holds at least one example", examples=examples)
        return self.compute_overhead + self.compute_per_example * examples

    def network_seconds(self, placement: Placement) -> float:
        """T_net: adding the gradients of all devices; 0 on one device.

        Args:
            placement: Where the step runs.
        """
        beyond = max(placement.num_devices - 2, 0)
        if placement.num_nodes > 1:
            return self.network_overhead + self.network_per_device * beyond
        return self.node_overhead + self.node_per_device * beyond if placement.num_devices > 1 else 0.0

    def step_seconds(self, examples: float, placement: Placement, *, num_extra: int = 0) -> float:
        """Seconds of one optimizer step.

        Args:
            examples: m, examples of a micro-batch on a device.
            placement: Where the step runs.
            num_extra: s, micro-batches accumulated before the one that is synchronised.

        Raises:
            DomainError: If there is no example, or the number of micro-batches negative.
        """
        require_not_negative("0 means no accumulation", num_extra=num_extra)
        compute, network = self.accumulation_seconds(examples), self.network_seconds(placement)
        longer, shorter = max(compute, network), min(compute, network)
        # the longer one outside the power: T^10 of microseconds would underflow
        last = longer * math.pow(1 + math.pow(shorter / longer, self.overlap), 1 / self.overlap)
        return num_extra * compute + last

    def examples_per_second(self, examples: float, placement: Placement, *, num_extra: int = 0) -> float:
        """Throughput B / T, B = n m (s + 1).

        Args:
            examples: m, examples of a micro-batch on a device.
            placement: Where the step runs.
            num_extra: s, micro-batches accumulated before the one that is synchronised.
        """
        batch = placement.num_devices * examples * (num_extra + 1)
        return batch / self.step_seconds(examples, placement, num_extra=num_extra)


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A measured step without accumulation.

    Attributes:
        examples: m, examples of the micro-batch on a device.
        placement: Where it ran.
        accumulation_seconds: T_acc, seconds of forward and backward without synchronisation.
        step_seconds: Seconds of the whole step.
    """

    examples: float
    placement: Placement
    accumulation_seconds: float
    step_seconds: float


def misfit(times: StepTimes, steps: Sequence[TimedStep]) -> float:
    """How badly the constants describe measured steps; a fit minimises it.

    Root mean square of the log ratios of both times, each by itself, plus two mild penalties that settle what few
    placements leave open: 10^-3 (γ - 1)², and 10^-2 of the squared ratios b / a of both networks.
    Source: the code of petuum/adaptdl.

    Args:
        times: Constants to judge.
        steps: What was measured.

    Raises:
        DomainError: If nothing was measured.
    """
    require_any("steps", len(steps), "time a few steps first")
    compute = [math.log(times.accumulation_seconds(s.examples) / s.accumulation_seconds) for s in steps]
    whole = [math.log(times.step_seconds(s.examples, s.placement) / s.step_seconds) for s in steps]
    networks = (
        (times.node_per_device, times.node_overhead),
        (times.network_per_device, times.network_overhead),
    )
    ratios = sum((slope / overhead) ** 2 for slope, overhead in networks if overhead > 0)
    return _rms(compute) + _rms(whole) + 1e-3 * (times.overlap - 1) ** 2 + 1e-2 * ratios


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in values) / len(values))
