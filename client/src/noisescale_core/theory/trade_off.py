"""The trade-off between optimizer steps and examples, and the batch size that prices choose.

Model: S = S_min (1 + B_crit / B), E = B S, so (S / S_min - 1)(E / E_min - 1) = 1 with B_crit = E_min / S_min, for one
target and any history of the noise scale at a constant batch.
Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11 and appendix D.1. The cost model is J = r S + E,
where r is how many examples one would spend to save one optimizer step (`prices.py`).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive

if TYPE_CHECKING:
    from noisescale_core.theory.intervals import Estimate


_BATCH = "a batch holds at least one example"
_CRITICAL = "fit it from a sweep, or estimate it from a resolved noise scale"
_LEAST = "fit it from at least two batch sizes, or use TradeOff.from_run"


# What share of the best possible progress a batch size buys, per example and per step.
#
# Both shares add to one: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.7, divided by its two limits.


def example_efficiency(noise_scale: float, batch_size: float) -> float:
    """e(B) = φ / (B + φ): progress per example, relative to the best possible; 1 for tiny batches.

    Args:
        noise_scale: φ in examples; 0 and infinity are its limits.
        batch_size: B in examples.

    Raises:
        DomainError: If the noise scale is negative or the batch not positive.
    """
    _check_sizes(noise_scale, batch_size)
    return 1 / (1 + batch_size / noise_scale) if noise_scale > 0 else 0.0


def step_efficiency(noise_scale: float, batch_size: float) -> float:
    """w(B) = B / (B + φ): progress per optimizer step, relative to the best possible; 1 for huge batches.

    Args:
        noise_scale: φ in examples; 0 and infinity are its limits.
        batch_size: B in examples.

    Raises:
        DomainError: If the noise scale is negative or the batch not positive.
    """
    _check_sizes(noise_scale, batch_size)
    return 1 / (1 + noise_scale / batch_size)


def _check_sizes(noise_scale: float, batch_size: float) -> None:
    # a recommendation asks for a thousand shares: the two calls below take most of the time of one
    if noise_scale >= 0 and 0 < batch_size < math.inf:
        return
    require_not_negative("an unresolved noise scale has a bound, no value", noise_scale=noise_scale)
    require_positive("a batch holds at least one example", batch_size=batch_size)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Steps and examples to one target at any constant batch.

    Attributes:
        min_steps: S_min, the optimizer steps that the largest batches need.
        min_examples: E_min, the examples that the smallest batches need.
        target: The performance level that all three numbers belong to, in words; without it they mean nothing.
    """

    min_steps: float
    min_examples: float
    target: str

    def __post_init__(self) -> None:
        """Refuse what is no trade-off.

        Raises:
            DomainError: If a number is not positive, or no target is named.
        """
        require_positive(_LEAST, min_steps=self.min_steps, min_examples=self.min_examples)
        if not self.target.strip():
            raise DomainError("target must name the performance level, got an empty text: for example 'loss 2.5'")

    @classmethod
    def from_run(cls, *, steps: float, batch: float, critical_batch: float, target: str) -> "TradeOff":
        """The trade-off on which one run at a constant batch lies, given B_crit.

        S_min = S / (1 + B_crit / B) is also the adjustment of Kaplan et al. 2020, arXiv:2001.08361, eq. 5.4.

        Args:
            steps: Optimizer steps of the run until the target.
            batch: Its batch in examples.
            critical_batch: B_crit in examples, for the same target.
            target: The performance level.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive(_CRITICAL, critical_batch=critical_batch)
        require_positive("a run that reached its target took steps", steps=steps, batch=batch)
        min_steps = steps * example_efficiency(batch, critical_batch)
        return cls(min_steps, min_steps * critical_batch, target)

    @property
    def critical_batch(self) -> float:
        """B_crit = E_min / S_min in examples: there steps and examples are both twice their minimum."""
        return self.min_examples / self.min_steps

    def steps(self, batch: float) -> float:
        """S(B) = S_min + E_min / B.

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive(_BATCH, batch=batch)
        return self.min_steps + self.min_examples / batch

    def examples(self, batch: float) -> float:
        """E(B) = E_min + S_min B.

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive(_BATCH, batch=batch)
        return self.min_examples + self.min_steps * batch

    def cost(self, batch: float, *, examples_per_step: float) -> float:
        """J(B) = r S(B) + E(B), in examples.

        Args:
            batch: B in examples.
            examples_per_step: r, examples per step.

        Raises:
            DomainError: If either is not positive.
        """
        require_positive("say what a step is worth, see prices.py", examples_per_step=examples_per_step)
        return examples_per_step * self.steps(batch) + self.examples(batch)


def steps_factor(*, from_batch: float, to_batch: float, critical_batch: float) -> float:
    """S(to) / S(from): how the number of optimizer steps to the same loss changes.

    Args:
        from_batch: In examples.
        to_batch: In examples.
        critical_batch: B_crit in examples; 0 and infinity are its limits.

    Raises:
        DomainError: If a batch is not positive or B_crit negative.
    """
    _check(from_batch, to_batch, critical_batch)
    if critical_batch == math.inf:
        return from_batch / to_batch
    return (1 + critical_batch / to_batch) / (1 + critical_batch / from_batch)


def examples_factor(*, from_batch: float, to_batch: float, critical_batch: float) -> float:
    """E(to) / E(from): how the number of examples to the same loss changes.

    Args:
        from_batch: In examples.
        to_batch: In examples.
        critical_batch: B_crit in examples; 0 and infinity are its limits.

    Raises:
        DomainError: If a batch is not positive or B_crit negative.
    """
    _check(from_batch, to_batch, critical_batch)
    if critical_batch == math.inf:
        return 1.0
    return (critical_batch + to_batch) / (critical_batch + from_batch)


def best_batch(*, critical_batch: float, examples_per_step: float) -> float:
    """B that minimises r S + E: √(r B_crit), r in examples per step.

    Args:
        critical_batch: B_crit in examples.
        examples_per_step: r; 0 and infinity are the limits that an extreme preference reaches in float64.

    Raises:
        DomainError: If B_crit is not positive or r negative.
    """
    require_positive(_CRITICAL, critical_batch=critical_batch)
    require_not_negative("say what a step is worth, see prices.py", examples_per_step=examples_per_step)
    # a ratio under the root: the product of two large numbers overflows where their geometric mean does not
    return critical_batch * math.sqrt(examples_per_step / critical_batch)


def best_batch_estimate(critical_batch: "Estimate", *, examples_per_step: float) -> "Estimate":
    """√(r B_crit) with its errors: at a stated price half the log error of B_crit.

    Args:
        critical_batch: B_crit in examples.
        examples_per_step: r, an exact number that the reader stated.

    Raises:
        DomainError: If r is not positive.
    """
    require_positive("say what a step is worth, see prices.py", examples_per_step=examples_per_step)
    return critical_batch.to_power(0.5, factor=math.sqrt(examples_per_step))


def exchange_rate(*, preference: float, critical_batch: float) -> float:
    """The r, in examples per step, that a preference between examples (0) and steps (1) stands for.

    Minimising λ log S + (1 - λ) log E gives B = B_crit λ / (1 - λ), which is √(r B_crit) at r = B_crit (λ / (1 - λ))².

    Args:
        preference: λ.
        critical_batch: B_crit in examples.

    Raises:
        DomainError: Unless 0 < preference < 1: at the ends the best batch is 0 or infinite.
    """
    if not 0 < preference < 1:
        raise DomainError(f"preference must be between 0 and 1, both excluded, got {preference:g}: 0.5 is balanced")
    odds = preference / (1 - preference)
    return critical_batch * odds * odds


def regret(*, batch: float, best: float) -> float:
    """Extra cost of training at a batch other than the best one, as a share.

    (2 + x + 1/x) / 4 - 1 for x = batch / best: 3 % at 1.4 ×, 12.5 % at 2 ×, 56 % at 4 ×. Exact at r = B_crit, where
    steps and examples are valued alike; at every other price it is less.

    Args:
        batch: In examples.
        best: In examples.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive(_BATCH, batch=batch, best=best)
    x = batch / best
    return (2 + x + 1 / x) / 4 - 1


def regret_at_price(*, batch: float, critical_batch: float, examples_per_step: float) -> float:
    """J(B) / J(√(r B_crit)) - 1: extra cost of a batch at a stated price, as a share.

    With x = B / √(r B_crit) it is √(r B_crit) (x + 1/x - 2) / (√r + √B_crit)²; the weight in front is at most 1/4, at
    r = B_crit, and falls as one of steps and examples hardly counts.

    Args:
        batch: B in examples.
        critical_batch: B_crit in examples.
        examples_per_step: r.

    Raises:
        DomainError: If one of them is not positive.
    """
    require_positive(_BATCH, batch=batch)
    x = batch / best_batch(critical_batch=critical_batch, examples_per_step=examples_per_step)
    balance = math.sqrt(examples_per_step / critical_batch)
    return (math.sqrt(x) - 1 / math.sqrt(x)) ** 2 / (balance + 1 / balance + 2)


def _check(from_batch: float, to_batch: float, critical_batch: float) -> None:
    require_positive(_BATCH, from_batch=from_batch, to_batch=to_batch)
    require_not_negative(_CRITICAL, critical_batch=critical_batch)
