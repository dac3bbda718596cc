"""Runs every estimator over a target, replicate by replicate, all on the same gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from benchmarks.truth.ours import Answers, Ours, make_ours
from benchmarks.truth.peers import Kind, Peer, make_peers
from benchmarks.truth.step import Array, Target


@dataclass(frozen=True, slots=True)
class OurResult:
    """One way of ours over all replicates."""

    name: str
    group_count: int | None
    answers: Answers


@dataclass(frozen=True, slots=True)
class PeerResult:
    """One peer over all replicates; `noise_scale` is what it shows at the end of the window, [R]."""

    name: str
    kind: Kind
    group_count: int | None
    noise_scale: Array


@dataclass(frozen=True, slots=True)
class Measurement:
    """All estimators over one target.

    Attributes:
        target: What was measured.
        trace_cov: Mean exact tr Σ of the window, [R].
        grad_sq_norm: Mean exact |G|² of the window, [R].
        ours: Our estimators.
        peers: Those of others.
    """

    target: Target
    trace_cov: Array
    grad_sq_norm: Array
    ours: Sequence[OurResult]
    peers: Sequence[PeerResult]

    @property
    def truth(self) -> Array:
        """The noise scale of the window, a ratio of means, [R]."""
        return self.trace_cov / self.grad_sq_norm


def measure(target: Target, replicates: int, seed: int) -> Measurement:
    """Every estimator on so many replicates of a target."""
    starts = range(0, replicates, target.replicates_at_once)
    chunks = [
        measure_chunk(target, min(target.replicates_at_once, replicates - start), 1_000_000 * seed + start)
        for start in starts
    ]
    return Measurement(
        target=target,
        trace_cov=np.concatenate([chunk.trace_cov for chunk in chunks]),
        grad_sq_norm=np.concatenate([chunk.grad_sq_norm for chunk in chunks]),
        ours=[join_ours([chunk.ours[i] for chunk in chunks]) for i in range(len(chunks[0].ours))],
        peers=[join_peers([chunk.peers[i] for chunk in chunks]) for i in range(len(chunks[0].peers))],
    )


def measure_chunk(target: Target, replicates: int, seed: int) -> Measurement:
    """As many replicates as fit into memory."""
    ours: list[Ours] = make_ours(target.group_counts)
    peers: list[Peer] = make_peers(target.group_counts)
    trace_cov, grad_sq_norm = np.zeros(replicates), np.zeros(replicates)
    for step in target.steps(replicates, seed):
        trace_cov += step.trace_cov
        grad_sq_norm += step.grad_sq_norm
        for estimator in (*ours, *peers):
            estimator.update(step)
    return Measurement(
        target=target,
        trace_cov=trace_cov / target.num_steps,
        grad_sq_norm=grad_sq_norm / target.num_steps,
        ours=[OurResult(one.name, one.group_count, one.answers()) for one in ours],
        peers=[PeerResult(one.name, one.kind, one.group_count, one.noise_scale()) for one in peers],
    )


def join_ours(parts: Sequence[OurResult]) -> OurResult:
    """The same way of ours over several chunks."""
    joined = {
        field.name: np.concatenate([getattr(part.answers, field.name) for part in parts]) for field in fields(Answers)
    }
    return OurResult(parts[0].name, parts[0].group_count, Answers(**joined))


def join_peers(parts: Sequence[PeerResult]) -> PeerResult:
    """The same peer over several chunks."""
    numbers = np.concatenate([part.noise_scale for part in parts])
    return PeerResult(parts[0].name, parts[0].kind, parts[0].group_count, numbers)
