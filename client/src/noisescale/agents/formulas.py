"""The formula behind each number of a run, where it was published, and the page of the docs that derives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NumberName = Literal[
    "noise_scale", "example_efficiency", "step_efficiency", "critical_batch", "recommended_batch_size", "probability",
    "saving", "worst_case", "learning_rate", "waste",
]  # fmt: skip

MCCANDLISH = "McCandlish et al. 2018, arXiv:1812.06162"


@dataclass(frozen=True, slots=True)
class Formula:
    """How a number is made.

    Attributes:
        text: The formula, with its symbols.
        source: Paper and section, or that it is ours.
        page: Of the documentation.
    """

    text: str
    source: str
    page: str


FORMULAS: Mapping[NumberName, Formula] = {
    "noise_scale": Formula(
        "φ = tr Σ ÷ |G|²: sums over the window, divided last; the interval is Fieller's, of a ratio. tr Σ is the "
        "trace of the covariance of one example's gradient, |G|² the squared norm of the true gradient, both from "
        "squared norms at two batch sizes",
        f"{MCCANDLISH}, section 2.2 and appendix A.1",
        "docs/estimators.md",
    ),
    "example_efficiency": Formula(
        "e(B) = φ ÷ (B + φ): progress per example, of the best possible",
        f"{MCCANDLISH}, eq. 2.7, divided by its two limits",
        "docs/theory.md",
    ),
    "step_efficiency": Formula(
        "w(B) = B ÷ (B + φ): progress per step, of the best possible",
        f"{MCCANDLISH}, eq. 2.7, divided by its two limits",
        "docs/theory.md",
    ),
    "critical_batch": Formula(
        "B_crit = κ φ over all looks of the run, a belief over φ with the spread of κ, which sweeps and branches of "
        "the task narrow",
        f"{MCCANDLISH}, section 2.3; κ and its spread are measured here",
        "docs/calibration.md",
    ),
    "recommended_batch_size": Formula(
        "the batch of least expected logarithm of cost S_min (1 + b/B) (r + B), b over the belief of B_crit and r what "
        "a step is worth in examples; inside the limits, rounded to a batch that can be run",
        f"cost: {MCCANDLISH}, section 2.3; the decision is ours",
        "docs/deciding.md",
    ),
    "probability": Formula(
        "the share of the belief of B_crit at which the recommended batch costs less than the present one, cost being "
        "S_min (1 + b/B) (r + B)",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "saving": Formula(
        "1 − exp of the mean, over the belief of B_crit, of ln(cost(recommended) ÷ cost(present)), at the price r of a "
        "step",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "worst_case": Formula(
        "the extra cost of the recommended batch over the present one in the worst twentieth of the belief of B_crit",
        "ours, tested on held-out tasks",
        "docs/deciding.md",
    ),
    "learning_rate": Formula(
        "the present rate times what the optimizer's rule says of B and B' at the noise scale",
        f"{MCCANDLISH}, eq. 2.6, and the rules of docs/theory.md for other optimizers",
        "docs/theory.md",
    ),
    "waste": Formula(
        "Σ n B w(B) over the moments of the run: examples spent beyond those that tiny batches would have needed for "
        "the same progress; n steps at batch B, w = B ÷ (B + φ) with the noise scale of the moment",
        f"{MCCANDLISH}, eq. 2.7 and D.1",
        "docs/theory.md",
    ),
}
