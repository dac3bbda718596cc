"""How the learning rate should follow the batch size."""

import math
from dataclasses import dataclass
from enum import StrEnum

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive

# A change of the batch size, and the change of one hyperparameter that goes with it.


@dataclass(frozen=True, slots=True)
class BatchChange:
    """The global batch goes from B to B' = k B.

    Attributes:
        from_batch: B in examples.
        to_batch: B' in examples.
        noise_scale: φ in examples; None where it is not known, and rules then assume that noise dominates.
    """

    from_batch: float
    to_batch: float
    noise_scale: float | None

    def __post_init__(self) -> None:
        """Refuse what is no change of a batch.

        Raises:
            DomainError: If a batch is not positive or the noise scale negative.
        """
        require_positive("a batch holds at least one example", from_batch=self.from_batch, to_batch=self.to_batch)
        if self.noise_scale is not None:
            require_not_negative("None where it is not resolved", noise_scale=self.noise_scale)

    @property
    def factor(self) -> float:
        """The k in B' = k B."""
        return self.to_batch / self.from_batch

    @property
    def known_noise_scale(self) -> float:
        """The noise scale, or infinity where it is not known: the limit in which noise dominates."""
        return math.inf if self.noise_scale is None else self.noise_scale

    @property
    def is_below_noise_scale(self) -> bool:
        """Whether noise dominates the gradient at both batches; False where the noise scale is not known."""
        return self.noise_scale is not None and max(self.from_batch, self.to_batch) <= self.noise_scale


@dataclass(frozen=True, slots=True)
class Change:
    """How one hyperparameter follows the batch.

    Attributes:
        field: Its name.
        before: Its value now.
        after: Its value then; None where the rule has no answer here.
        rule: The rule in a few words.
        holds_for: Where the rule holds, in words.
        is_in_range: Whether this change of batch lies there.
        is_verified: Whether theory or published tests cover this optimizer.
        source: Paper, or None where there is no rule.
        alternative: What another rule says, explained in the text.
        text: What else to know.
    """

    field: str
    before: float
    after: float | None
    rule: str
    holds_for: str
    is_in_range: bool
    is_verified: bool
    source: str | None
    alternative: float | None = None
    text: str = ""


class RuleFamily(StrEnum):
    """Optimizers that share a rule."""

    SGD = "sgd"
    ADAM = "adam"
    OTHER = "other"


_SGD = frozenset({"sgd", "asgd", "fusedsgd"})
_ANALYSED = frozenset(
    {"adam", "adamw", "rmsprop", "fusedadam", "deepspeedcpuadam", "distributedfusedadam", "torchadamw"}
    | {
        f"{paged}{name}{bits}"
        for paged in ("", "paged")
        for name in ("adam", "adamw")
        for bits in ("", "8bit", "32bit")
    }
)
"""Adam, AdamW and RMSprop by the names that PyTorch, Apex, DeepSpeed, Megatron and bitsandbytes give them."""
_WITHOUT_AVERAGE = frozenset({"rmsprop", "adagrad", "adadelta"})
"""They average squares alone, unless they are asked for more."""

_ADAM = _ANALYSED | {"adamax", "nadam", "radam", "adagrad", "adadelta"}


@dataclass(frozen=True, slots=True)
class Rule:
    """How a learning rate was rescaled.

    Attributes:
        factor: New learning rate divided by the present one.
        name: The rule in a word or two.
        is_verified: Whether theory covers this optimizer; otherwise the factor is only a place to start a search.
    """

    factor: float
    name: str
    is_verified: bool


def family_of(optimizer: str | None) -> RuleFamily:
    """The family of an optimizer's class name, upper or lower case."""
    name = (optimizer or "").lower()
    if name in _SGD:
        return RuleFamily.SGD
    return RuleFamily.ADAM if name in _ADAM else RuleFamily.OTHER


def averages_gradients(optimizer: str | None, momentum: float | None) -> bool | None:
    """Whether an optimizer averages gradients over steps, as SGD with momentum and Adam do; None where nobody knows.

    Args:
        optimizer: Class name of the optimizer.
        momentum: Of SGD; None where it is not known.
    """
    family = family_of(optimizer)
    if family is RuleFamily.SGD:
        return None if momentum is None else momentum > 0
    return True if family is RuleFamily.ADAM and (optimizer or "").lower() not in _WITHOUT_AVERAGE else None


def gain(*, from_batch: float, to_batch: float, noise_scale: float) -> float:
    """(1 + φ/B) / (1 + φ/B'): how much larger the best SGD learning rate is at B'.

    Linear in B' far below φ, constant far above. Equal to the AdaScale gain (Johnson et al. 2020, arXiv:2007.05105).
    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6.

    Args:
        from_batch: B in examples.
        to_batch: B' in examples.
        noise_scale: φ in examples; 0 and infinity are its limits.

    Raises:
        DomainError: If a batch is not positive or the noise scale negative.
    """
    require_positive("a batch holds at least one example", from_batch=from_batch, to_batch=to_batch)
    require_not_negative("an unresolved noise scale has a bound, no value", noise_scale=noise_scale)
    if noise_scale == math.inf:
        return to_batch / from_batch
    return (1 + noise_scale / from_batch) / (1 + noise_scale / to_batch)


def rescale(*, optimizer: str | None, from_batch: float, to_batch: float, noise_scale: float) -> Rule:
    """The factor on the learning rate when the batch goes from B to B'.

    SGD: the gain. Adam, AdamW and RMSprop: its square root, √(B'/B) far below φ (Malladi et al. 2022,
    arXiv:2205.10287). Others (LARS, LAMB, Lion, Muon, Adagrad): no verified rule, the square root is a start for a
    search.

    Args:
        optimizer: Class name of the optimizer.
        from_batch: B in examples.
        to_batch: B' in examples.
        noise_scale: φ in examples; 0 and infinity are its limits.
    """
    ratio = gain(from_batch=from_batch, to_batch=to_batch, noise_scale=noise_scale)
    if family_of(optimizer) is RuleFamily.SGD:
        return Rule(ratio, "noise-scale rule", is_verified=True)
    if (optimizer or "").lower() in _ANALYSED:
        return Rule(math.sqrt(ratio), "square-root rule", is_verified=True)
    return Rule(math.sqrt(ratio), "square root as a start", is_verified=False)


def grid(center: float, *, num_points: int = 3) -> tuple[float, ...]:
    """Learning rates to try around a rule's answer, factor 2 apart; the fourth of four lies below.

    No rule held across workloads (Shallue et al. 2018, arXiv:1811.03600), so every rule's answer is the
    centre of a short search.

    Args:
        center: What the rule says.
        num_points: 3, 4 or 5.

    Raises:
        DomainError: If the centre is not positive or the number of points another.
    """
    require_positive("rescale a learning rate that trains", center=center)
    if num_points not in (3, 4, 5):
        raise DomainError(f"num_points must be 3, 4 or 5, got {num_points}: wider searches belong into a sweep")
    first = -(num_points // 2)
    return tuple(center * 2.0**exponent for exponent in range(first, first + num_points))
