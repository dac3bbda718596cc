"""How the learning rate should follow the batch size."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Optimizers that share a rule."""

    SGD = "sgd"
    ADAM = "adam"
    OTHER = "other"


_SGD = frozenset({"sgd", "asgd"})
_ADAM = frozenset({"adam", "adamw", "adamax", "nadam", "radam", "rmsprop", "adagrad", "adadelta"})


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


def family_of(optimizer: str | None) -> Family:
    """The family of an optimizer's class name, upper or lower case."""
    name = (optimizer or "").lower()
    if name in _SGD:
        return Family.SGD
    return Family.ADAM if name in _ADAM else Family.OTHER


def gain(*, from_batch: float, to_batch: float, noise_scale: float) -> float:
    """(1 + φ/B) / (1 + φ/B'): how much larger the best SGD learning rate is at B'.

    Linear in B' far below φ, constant far above. Equal to the AdaScale gain (Johnson et al. 2020, arXiv:2007.05105).
    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6.
    """
    return (1 + noise_scale / from_batch) / (1 + noise_scale / to_batch)


def rescale(*, optimizer: str | None, from_batch: float, to_batch: float, noise_scale: float) -> Rule:
    """The factor on the learning rate when the batch goes from B to B'.

    SGD: the gain. Adam and its kin: its square root, √(B'/B) far below φ (Malladi et al. 2022, arXiv:2205.10287).
    Others (LARS, LAMB, Lion, Muon): no verified rule; the square root is a start for a search.
    """
    ratio = gain(from_batch=from_batch, to_batch=to_batch, noise_scale=noise_scale)
    match family_of(optimizer):
        case Family.SGD:
            return Rule(ratio, "noise-scale rule", is_verified=True)
        case Family.ADAM:
            return Rule(math.sqrt(ratio), "square-root rule", is_verified=True)
        case Family.OTHER:
            return Rule(math.sqrt(ratio), "square root as a start", is_verified=False)
