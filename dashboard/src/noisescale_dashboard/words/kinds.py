"""The kinds of noise scale in words: what a figure of each is called, what its two terms are, what to keep in mind."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of noise scale.

    Attributes:
        name: The word of the API and of the address.
        label: In the choice of kinds.
        title: What is plotted.
        noise: Its numerator.
        signal: Its denominator.
        caveat: What it is not, in a line; None for kind simple.
    """

    name: str
    label: str
    title: str
    noise: str
    signal: str
    caveat: str | None = None


SIMPLE: Final = Kind("simple", "Simple", "Noise scale B_noise", "tr Σ", "|G|²")

KINDS: Final = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            SIMPLE,
            Kind(
                "adam",
                "Adam",
                "Adam-preconditioned noise scale",
                "tr Σ",
                "|G|²",
                "Kind adam: of gradients divided by the roots of the optimizer's second moments.",
            ),
            Kind(
                "sign",
                "Sign",
                "Noise scale in sign geometry",
                "(Σ σ)²",
                "(Σ |G|)²",
                "Kind sign: (Σ σ)² ÷ (Σ |G|)² over single parameters, the geometry of Lion and signSGD;"
                " biased, within bounds.",
            ),
            Kind(
                "spectral",
                "Spectral",
                "Noise scale in spectral geometry",
                "noise",
                "signal",
                "Kind spectral: squared nuclear norms over the matrices, the geometry of Muon; biased, within bounds.",
            ),
            Kind(
                "hessian",
                "Hessian",
                "Hessian-weighted noise scale",
                "tr(H Σ)",
                "GᵀH G",
                "Kind hessian: tr(H Σ) ÷ GᵀH G, eq. 2.8 of McCandlish et al. 2018, not the same as kind simple.",
            ),
        )
    }
)
NO_ADVICE: Final = "The recommendation rests on kind simple alone."


def kind_named(name: str) -> Kind:
    """The kind of this name; one that a newer server knows goes by its own name."""
    return KINDS.get(name) or Kind(name, name.capitalize(), f"Noise scale, kind {name}", "noise", "signal", NO_ADVICE)
