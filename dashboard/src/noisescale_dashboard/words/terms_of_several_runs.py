"""Terms of deciding, of sweeps, and of what holds over several runs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.words.term import MCCANDLISH, Term

COMPARED: Final[Mapping[str, Term]] = MappingProxyType(
    {
        "learning_rate": Term(
            "learning rate",
            "How far a step goes along the gradient; the best one rises with the batch.",
            "With noise scale φ the best rate at batch B is that of a huge batch times B ÷ (B + φ), for SGD; for "
            "Adam it rises as the square root.",
            f"{MCCANDLISH}, eq. 2.6",
        ),
        "path_ratio": Term(
            "path ratio",
            "How far the parameters got, against a random walk of the same updates.",
            "At too low a rate the updates push on in one direction, at too high a one they take each other back.",
            "Ivgi et al. 2023, arXiv:2302.12022",
            named=("path_ratio",),
        ),
        "push": Term(
            "push",
            "Whether the last half of a run's updates still carry the parameters on along their path, or back.",
            "Above 0 the learning rate may rise, below 0 it is likely too high; it turns sooner than the path ratio.",
            named=("push",),
        ),
        "octave": Term("octave", "A factor of two of a learning rate or a batch.", named=("octave",)),
        "anchor_rate": Term(
            "rate that others follow from",
            "The last batch and learning rate that were tested, from which rates at other batches are derived.",
            named=("anchor",),
        ),
        "example": Term(
            "example",
            "What is drawn independently for a batch: an image, a sequence, a piece of an episode.",
            "A token inside a sequence is no example: tokens of one sequence depend on each other.",
            named=("example",),
        ),
        "regime": Term(
            "regime",
            "Whether a larger batch still saves steps: nearly all of them, some, or none.",
            "Perfect below a tenth of the critical batch, diminishing up to ten times it, maximal above.",
            "Shallue et al. 2018, arXiv:1811.03600",
            named=("regime",),
        ),
        "trade_off": Term(
            "trade-off curve",
            "All pairs of steps and examples that reach the same loss: fewer of one cost more of the other.",
            "(S ÷ S_min − 1) (E ÷ E_min − 1) = 1. A small batch stands at the end of few examples, a large one "
            "at the end of few steps.",
            f"{MCCANDLISH}, eq. 2.11",
        ),
        "exchange_rate": Term(
            "price of a step",
            "How many examples you would spend to save one step.",
            "r; the best batch is √(r B_crit). At a preference in the middle r is the critical batch.",
            named=("exchange_rate",),
        ),
        "decision": Term(
            "decision",
            "What the odds say about the batch in use: raise, lower, keep, probably so, or not known yet.",
            named=("decision",),
        ),
        "misfit": Term(
            "fit",
            "How far the batch in use is from the noise scale, as a factor.",
            "|log(batch ÷ noise scale)|. What the batch in use loses rises with it alone.",
            named=("misfit",),
        ),
        "tuned_run": Term(
            "tuned run",
            "A sweep's run at the best of the learning rates that were tried at its batch size.",
            named=("tuned run", "near_critical", "all_batches"),
        ),
        "average": Term(
            "average over a run",
            "The noise scale of a whole run in one number, each step counted alike unless said otherwise.",
            "The ideal-step average counts a step by B ÷ (B + φ), the progress that it makes.",
            named=("run average", "ideal-step average", "equal-example average", "start"),
        ),
        "ideal_steps": Term(
            "ideal steps",
            "Progress counted in steps of a batch so large that it holds no noise.",
            "A step at batch B makes B ÷ (B + φ) of one.",
            f"{MCCANDLISH}, eq. D.1",
            named=("ideal_steps",),
        ),
        "rms_factor": Term(
            "rms factor",
            "How far off a prediction is on the whole, as a factor up or down.",
            "e to the root mean square of the difference of logarithms: 2 × means half to double.",
            named=("rms factor",),
        ),
        "law": Term(
            "law over the loss",
            "How the noise scale grows as the loss falls, as a formula fitted to a run's own windows.",
            "A power of the loss, or of its distance from the least loss there is. The verdict says whether a "
            "law fits at all.",
            "Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3",
            named=("irreducible loss", "verdict", "growth exponent"),
        ),
        "cluster": Term(
            "cluster",
            "Measurements whose errors go together, such as windows of one run, so that they count as fewer.",
            named=("cluster",),
        ),
        "pace": Term(
            "pace",
            "Time, devices and price of a step, as the run has shown them.",
            named=("pace",),
        ),
        "binding_limit": Term(
            "limit that binds",
            "The deadline, budget or device limit that keeps the batch away from the best one.",
            named=("binding limit",),
        ),
        "schedule": Term(
            "schedule",
            "A batch size that changes during a run, by rules that are known beforehand.",
            "Its regret beside it is measured: what training held-out tasks by it cost over the best constant batch.",
            f"{MCCANDLISH}, appendix D",
            named=("gamma",),
        ),
        "calibrated": Term(
            "calibrated",
            "A sweep, a branch or a followed run on this server tells the critical batch itself, so odds are sharper.",
            "Without one the interval holds the spread over published tasks, a factor of 7 either way.",
            named=("calibrated", "uncalibrated"),
        ),
        "margin": Term(
            "as good, worse, open",
            "Whether a branch's arm is surely within the margin of the present setting, surely not, or not known yet.",
            "The margin is how much worse its loss may be and still count as good.",
            named=("margin", "as_good", "worse", "open"),
        ),
        "diverged": Term(
            "diverged",
            "The loss stopped being a finite number, or rose without end; nothing is estimated after that.",
            named=("infeasible", "num_nonfinite"),
        ),
        "reproduction": Term(
            "reproduction",
            "A published claim tested again by training, with what came out.",
            named=("reproduction",),
        ),
    }
)
