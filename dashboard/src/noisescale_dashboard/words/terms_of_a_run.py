"""Terms of what is measured in a run and what is advised by it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.words.term import MCCANDLISH, Term

MEASURED: Final[Mapping[str, Term]] = MappingProxyType(
    {
        "noise_scale": Term(
            "noise scale",
            "The batch size at which the noise in a gradient is as large as the gradient itself.",
            "tr Σ ÷ |G|²: how much the gradients of single examples scatter, divided by the square of what they agree "
            "on. It is measured in examples. It grows during training, as the gradient shrinks and the scatter stays.",
            f"{MCCANDLISH}, eq. 2.9",
            named=("noise_scale", "b_simple"),
        ),
        "critical_batch": Term(
            "critical batch",
            "The batch size at which a run takes twice the fewest steps and twice the fewest examples.",
            "B_crit = E_min ÷ S_min, for one target loss. Below it, doubling the batch nearly halves the steps; above "
            "it, it mostly repeats work. It is κ times the noise scale.",
            f"{MCCANDLISH}, eq. 2.11",
            named=("b_crit",),
        ),
        "resolved": Term(
            "resolved",
            "Measured well enough to decide by: the interval is bounded and the gradient stands out from the noise.",
            "z of 4 or more in the window, and the steps before it let z ≥ 5 be expected.",
            named=("resolved",),
        ),
        "unresolved": Term(
            "not resolved",
            "The gradient cannot be told from the noise yet, so there is a lower bound at most, and no number.",
            "More steps help; so do more micro-batches a step, which make each measurement sharper.",
            named=("unresolved", "no_signal_yet"),
        ),
        "tentative": Term(
            "tentative",
            "There is a value with an interval, but not enough steps to be sure of it.",
            named=("tentative",),
        ),
        "window": Term(
            "window",
            "The latest steps over which an estimate is made, usually 5 % of the run.",
            "Both terms are averaged over it before they are divided; a longer window has a narrower interval and "
            "follows changes later.",
            named=("window", "widened"),
        ),
        "kappa": Term(
            "κ",
            "How many times larger the critical batch is than the noise scale for this task.",
            "Over published tasks it scatters by a factor of 7 either way. A sweep or a short branch measures it here.",
            named=("kappa",),
        ),
        "trace_cov": Term(
            "tr Σ",
            "How much the gradients of single examples scatter around their mean.",
            "The trace of the covariance of one example's gradient: the numerator of the noise scale.",
            f"{MCCANDLISH}, appendix A.1",
            named=("trace_cov",),
        ),
        "grad_sq_norm": Term(
            "|G|²",
            "The squared length of the true gradient, without the noise of the batch.",
            "The denominator of the noise scale. A single step's estimate may be negative; windows are averaged.",
            f"{MCCANDLISH}, appendix A.1",
            named=("grad_sq_norm",),
        ),
        "z": Term(
            "z",
            "How many times its own error the squared gradient is: above 4 it stands out from the noise.",
            named=("z",),
        ),
        "example_efficiency": Term(
            "example efficiency",
            "How much of each example is put to use: 100 % where the batch is tiny, 50 % at the noise scale.",
            "e(B) = φ ÷ (B + φ). Together with the step efficiency it makes 100 %.",
            f"{MCCANDLISH}, eq. 2.6",
            named=("example_efficiency",),
        ),
        "step_efficiency": Term(
            "step efficiency",
            "How much progress a step makes of what the largest batch would make: 50 % at the noise scale.",
            "w(B) = B ÷ (B + φ).",
            f"{MCCANDLISH}, eq. 2.5",
            named=("step_efficiency",),
        ),
        "regret": Term(
            "regret",
            "What a batch size costs more than the best one would have, at the same price of time and data.",
            named=("regret", "policy regret", "rounding regret"),
        ),
        "redundant": Term(
            "redundant",
            "Data that repeats what the rest of its batch had said already; a smaller batch would not have needed it.",
            named=("waste",),
        ),
        "balanced": Term(
            "balanced",
            "Saving 1 % of the steps is worth 1 % more data: the best batch is then the critical batch.",
        ),
        "preference": Term(
            "preference",
            "What matters more to you, fewer examples or fewer steps; in the middle both matter equally.",
            named=("preference",),
        ),
        "sureness": Term(
            "sure, likely, probably",
            "How likely a change is cheaper: sure from 95 %, likely from 80 %, probably from 60 %.",
            "The odds come from all steps of the run, from what other tasks had, and from sweeps on this server; "
            "“How often were we right here?” holds them against what came true.",
            named=("odds",),
        ),
        "micro_batch": Term(
            "micro-batch",
            "What one device puts through one backward pass; several make the batch of a step.",
            named=("micro_batch",),
        ),
        "per_example": Term(
            "per-example norms",
            "The length of each example's own gradient, read off the backward pass where a step has only one.",
        ),
        "kind": Term(
            "kind",
            "Which noise scale: of the plain gradient, or as Adam, sign, spectral or curvature see it.",
            "Decisions rest on the plain one.",
            named=("kind", "b_hessian"),
        ),
        "sweep": Term(
            "sweep",
            "Runs of one task at several batch sizes, compared by the steps they take to one target.",
            named=("sweep",),
        ),
        "branch": Term(
            "branch",
            "Short runs from where a run stands, at other batch sizes or learning rates, on the same examples.",
            named=("branch", "arm"),
        ),
        "target": Term(
            "target",
            "The loss or score at which runs are compared; a critical batch belongs to one.",
            named=("target", "goal"),
        ),
        "unit": Term(
            "unit",
            "What is counted for people, such as tokens; an example may hold many of them.",
            named=("unit", "units_per_example"),
        ),
        "e_min_s_min": Term(
            "E_min and S_min",
            "The fewest examples, and the fewest steps, that reach the target at any batch size.",
            "From the fit of (S ÷ S_min − 1) (E ÷ E_min − 1) = 1 to a sweep.",
            f"{MCCANDLISH}, eq. 2.11",
        ),
        "interval": Term(
            "interval", "Where the value lies with a probability of 95 %.", named=("low", "high", "level")
        ),
    }
)
"""By the name that code gives them; the order is that of the page."""
