"""The critical batch as a function of the loss, and what follows for steps and compute.

B_crit(L) = B* / (L - L∞)^(1/α): it grows as the loss falls and does not depend on the model's size otherwise.
Source: Kaplan et al. 2020, arXiv:2001.08361, section 5.1, eq. 5.3 to 5.5, where L∞ = 0. Constants of one tokenizer and
data set say nothing about another.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.efficiency import example_efficiency, step_efficiency


@dataclass(frozen=True, slots=True)
class LossLaw:
    """A power law of the critical batch in the loss.

    Attributes:
        batch_at_one: B*, the critical batch one above the irreducible loss, in `unit`.
        exponent: α; B_crit doubles when the loss above L∞ falls to 2^-α of itself.
        unit: What B* counts.
        loss_unit: What the loss is measured in.
        irreducible_loss: L∞.
    """

    batch_at_one: float
    exponent: float
    unit: str
    loss_unit: str
    irreducible_loss: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no falling power law.

        Raises:
            DomainError: If B* or α is not positive, or L∞ negative.
        """
        require_positive("fit it to targets of one task", batch_at_one=self.batch_at_one, exponent=self.exponent)
        require_not_negative("0 where it is not known", irreducible_loss=self.irreducible_loss)

    def critical_batch(self, loss: float) -> float:
        """B_crit(L), in `unit`.

        Args:
            loss: L in `loss_unit`.

        Raises:
            DomainError: Unless the loss exceeds the irreducible one.
        """
        if not self.irreducible_loss < loss < math.inf:
            raise DomainError(
                f"loss must exceed irreducible_loss {self.irreducible_loss:g}, got {loss:g}: it is a limit"
            )
        return self.batch_at_one * math.pow(loss - self.irreducible_loss, -1 / self.exponent)

    def loss_at(self, critical_batch: float) -> float:
        """The loss at which the critical batch is this large: the inverse.

        Args:
            critical_batch: In `unit`.

        Raises:
            DomainError: If it is not positive.
        """
        require_positive("give B_crit in the law's unit", critical_batch=critical_batch)
        return self.irreducible_loss + math.pow(self.batch_at_one / critical_batch, self.exponent)

    @property
    def fall_that_doubles(self) -> float:
        """By which share the loss above L∞ must fall for B_crit to double: 1 - 2^-α."""
        return 1 - math.pow(2.0, -self.exponent)


KAPLAN_WEBTEXT2 = LossLaw(batch_at_one=2e8, exponent=0.21, unit="tokens", loss_unit="nats per token of WebText2")
"""Transformer language models on WebText2. Source: Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3."""


def min_steps(*, steps: float, batch: float, critical_batch: float) -> float:
    """S_min = S / (1 + B_crit / B): the steps that the same loss takes at huge batches, eq. 5.4.

    Args:
        steps: S taken at a constant batch.
        batch: B, in any unit.
        critical_batch: B_crit at the loss reached, in the same unit.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("a run that reached its loss took steps", steps=steps)
    return steps * step_efficiency(critical_batch, batch)


def min_compute(*, compute: float, batch: float, critical_batch: float) -> float:
    """C_min = C / (1 + B / B_crit): the compute that the same loss takes at tiny batches, eq. 5.5.

    Args:
        compute: C taken at a constant batch, in any unit.
        batch: B, in any unit.
        critical_batch: B_crit at the loss reached, in the same unit.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("count what was spent", compute=compute)
    return compute * example_efficiency(critical_batch, batch)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """L(N, S_min) = (N_c / N)^α_N + (S_c / S_min)^α_S: loss from the model's size and the steps at huge batches.

    Source: Kaplan et al. 2020, arXiv:2001.08361, eq. 1.6; there S_c = 2.1e3 steps and α_S = 0.76.

    Attributes:
        size_scale: N_c, parameters.
        size_exponent: α_N.
        step_scale: S_c, steps.
        step_exponent: α_S.
    """

    size_scale: float
    size_exponent: float
    step_scale: float = 2.1e3
    step_exponent: float = 0.76

    def __post_init__(self) -> None:
        """Refuse what is no power law.

        Raises:
            DomainError: If a constant is not positive.
        """
        require_positive("fit it to one task", size_scale=self.size_scale, size_exponent=self.size_exponent)
        require_positive("fit it to one task", step_scale=self.step_scale, step_exponent=self.step_exponent)

    def loss(self, *, parameters: float, min_steps: float) -> float:
        """L, in the loss unit of the constants.

        Args:
            parameters: N, without embeddings.
            min_steps: S_min, steps at huge batches.

        Raises:
            DomainError: If either is not positive.
        """
        require_positive("count without embeddings", parameters=parameters)
        require_positive("adjust the steps taken by min_steps()", min_steps=min_steps)
        of_size = math.pow(self.size_scale / parameters, self.size_exponent)
        return of_size + math.pow(self.step_scale / min_steps, self.step_exponent)
