"""How what cards of runs show is computed: on Overview, Runs, a run, Compare and Learn."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.shell.how import MCCANDLISH, How

OVERVIEW: Final[Mapping[str, How]] = MappingProxyType(
    {
        "overview-misfit-card": How(
            "Batch in use ÷ recommended batch of each run's newest window, the recommended one being √(r\u00a0B_crit) "
            "at the chosen preference, with B_crit = κ × noise scale. The thick bar is the 95 % interval of the "
            "measurement, the thin one holds the error of κ too; an unresolved run has only an upper end.",
            "recommendations.md", ("noise_scale", "preference", "kappa"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "overview-events-card": How(
            "Read from a short series of each run: the first resolved point, the last point at which noise scale and "
            "batch cross, the last change of batch and learning rate, and the run's status. Times are those of the "
            "points, so steps are “about”.",
            "dashboard.md", ("resolved", "noise_scale"),
        ),
        "overview-small-card": How(
            "Noise scale tr Σ ÷ |G|² over windows of each run, both terms averaged before they are divided; the band "
            "is the 95 % Fieller interval, and where it has no upper end a lower bound is drawn.",
            "estimators.md", ("b_simple", "window", "unresolved"), f"{MCCANDLISH}, appendix A.1",
        ),
    }
)  # fmt: skip

RUN: Final[Mapping[str, How]] = MappingProxyType(
    {
        "runs-card": How(
            "Noise scale tr Σ ÷ |G|² of each run's newest window, the last 5 % of its steps, with its 95 % Fieller "
            "interval. The decision compares batch and recommended batch κ × noise scale at a balanced preference; "
            "the list stands by |log(batch ÷ noise scale)|, with which the savings grow.",
            "rest.md", ("b_simple", "decision", "misfit", "kappa"), f"{MCCANDLISH}, appendix A.1 and eq. 2.11",
        ),
        "runs-change": How(
            "The decision of each run's last look: batch in use against the recommended one, for a reader who says no "
            "price. The saving is the expected cost of the rest at the batch in use less that at the recommended one, "
            "as a share; the odds say how likely the change costs less. Trials of sweeps are left out.",
            "deciding.md", ("decision", "kappa"),
        ),
        "run-noise-card": How(
            "Squared gradient norms at two batch sizes give the signal |G|² and the noise tr Σ of each step; both are "
            "averaged over a window and then divided. The band is the 95 % Fieller interval of that ratio: where |G|² "
            "cannot be told from zero there is a lower bound and no number. Other kinds than simple weigh the gradient "
            "otherwise.",
            "estimators.md", ("b_simple", "kind", "window", "resolved"), f"{MCCANDLISH}, appendix A.1",
        ),
        "run-terms-card": How(
            "tr Σ, the variance of one example's gradient, and |G|², the squared true gradient, each averaged over the "
            "window with the interval from the spread of its blocks. Efficiencies follow from noise scale φ and batch "
            "B alone: φ ÷ (φ + B) for an example, B ÷ (φ + B) for a step, as if the critical batch were φ (κ = 1).",
            "estimators.md", ("trace_cov", "grad_sq_norm", "example_efficiency", "step_efficiency"),
            f"{MCCANDLISH}, appendix A.1 and eq. 2.7",
        ),
        "run-loss-card": How(
            "The loss that the training loop logged, averaged over the steps of each point; the last one is that of "
            "the latest step, as in the key figures. The faint band is the least and the most of these steps.",
            "dashboard.md", ("loss_reduction", "step"),
        ),
        "run-advice": How(
            "The critical batch is κ times the noise scale, and the batch that costs least at the stated price of a "
            "step is √(r\u00a0B_crit). Its interval holds the error of the measurement and that of κ; steps and "
            "examples at another batch are predicted by S = S_min (1 + B_crit ÷ B). Efficiencies, and what was "
            "redundant, are by the noise scale alone: where κ is not 1 they are not the ratios of these steps.",
            "recommendations.md", ("b_crit", "kappa", "exchange_rate", "preference"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "run-tradeoff-card": How(
            "On the way to one loss steps S and examples E lie on (S ÷ S_min − 1)(E ÷ E_min − 1) = 1, and a batch "
            "stands where B ÷ B_crit puts it. Predicted, with B_crit = κ × noise scale; the broad stretch is its "
            "95 % interval. The efficiencies of the key figures are by the noise scale alone (κ = 1).",
            "theory.md", ("b_crit", "kappa"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "run-against-card": How(
            "Resolved windows that do not overlap, against their loss, with a power law that may have an irreducible "
            "loss. Errors are clustered, and where several shapes fit equally well the band covers them all.",
            "laws.md", ("irreducible loss", "cluster", "verdict"), "Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3",
        ),
        "run-rate-card": How(
            "How far the parameters got for the updates that were made, against a random walk of the same updates: at "
            "too low a rate the updates push on, at too high a one they take each other back. How that ratio tells the "
            "rate comes from runs of known best rate on other tasks.",
            "learning_rate.md", ("path_ratio", "octave"), "Ivgi et al. 2023, arXiv:2302.12022",
        ),
        "run-layers-card": How(
            "The same two terms from the squared norms of each layer's own gradients, divided layer by layer. A "
            "layer's noise scale says how noisy its gradient is; it is no batch size to train that layer with.",
            "measuring.md", ("trace_cov", "grad_sq_norm", "b_simple"), f"{MCCANDLISH}, appendix A.1",
        ),
        "run-metrics-card": How(
            "What log_metrics was given, as it was logged: the newest value, its step, and the least and the most "
            "over the steps shown.",
            "wire.md", ("step",),
        ),
        "run-ledger-card": How(
            "Each process numbers its records; of those acknowledged each is stored, declared lost with a reason, or "
            "rejected. The sums are checked against each other in the database.",
            "delivery.md", ("stream", "ledger", "declared loss"),
        ),
        "run-config-card": How(
            "Nothing is computed: it is what init() was given and what the client says of the measurement. Values "
            "whose key looks like a secret are kept as ***.",
            "wire.md", ("estimator", "num_ranks", "loss_reduction"),
        ),
    }
)  # fmt: skip

COMPARE: Final[Mapping[str, How]] = MappingProxyType(
    {
        "compare-scatter-card": How(
            "Each task's noise scale, averaged over the steps of a tuned run, against B_crit = E_min ÷ S_min of its "
            "sweep, in the task's unit. The band is × and ÷ the rms factor of the published tasks about y = x.",
            "laws.md", ("b_crit", "run average", "rms factor"), f"{MCCANDLISH}, table 1",
        ),
        "compare-statistics-card": How(
            "Of the logarithms of noise scale and critical batch over tasks: r² about the fit and about y = x, slope, "
            "rms factor, median κ. Intervals are from drawing the tasks again with replacement, since the question is "
            "what other tasks would say.",
            "laws.md", ("rms factor", "kappa"),
        ),
        "compare-order-card": How(
            "Noise scales of tasks that follow each other in difficulty, averaged over each run; bars are intervals, "
            "or ranges of several runs. An order holds where intervals of neighbours do not overlap.",
            "laws.md", ("run average", "noise_scale"), f"{MCCANDLISH}, table 1",
        ),
        "compare-sizes-card": How(
            "log φ = a + b log loss + c log size over the resolved windows of all runs: 10ᶜ is the factor for ten "
            "times the size at equal loss. Its interval counts each run once, however many windows it has.",
            "laws.md", ("cluster", "noise_scale"), "Kaplan et al. 2020, arXiv:2001.08361, section 5.1",
        ),
        "compare-runs-card": How(
            "What each run's own page shows, put on one axis: noise scale as tr Σ ÷ |G|² of a window with its 95 % "
            "interval, loss, batch, or example efficiency φ ÷ (φ + B), by the noise scale alone (κ = 1). Over "
            "loss a window stands where the run first reaches it.",
            "rest.md", ("b_simple", "example_efficiency", "window"), f"{MCCANDLISH}, appendix A.1",
        ),
        "compare-ratio-card": How(
            "Noise scale of each run ÷ that of the first where both have come equally far; the first is interpolated "
            "on a log scale, and nothing is said across gaps. The band adds the errors of both in quadrature.",
            "rest.md", ("noise_scale", "resolved"),
        ),
        "compare-table-card": How(
            "Newest window of each run: tr Σ ÷ |G|² with its 95 % Fieller interval, and the decision that the run's "
            "own page gives at a balanced preference.",
            "estimators.md", ("b_simple", "decision", "preference"), f"{MCCANDLISH}, appendix A.1",
        ),
        "compare-config-card": How(
            "Each line is a run, with its batch, learning rate, optimizer and the config keys that differ; its colour "
            "is the decision at a balanced preference. Nothing else is computed.",
            "dashboard.md", ("decision",),
        ),
        "compare-differences-card": How(
            "Values of all config keys, as the scripts gave them, of which at least two runs differ. Nothing is "
            "computed.",
            "dashboard.md", (),
        ),
    }
)  # fmt: skip
LEARN: Final[Mapping[str, How]] = MappingProxyType(
    {
        "learn-try-card": How(
            "Arrows: 60 draws around a gradient of length 1 with noise of variance noise scale ÷ batch. Curve: the "
            "batch of the slider on (S ÷ S_min − 1)(E ÷ E_min − 1) = 1, with the noise scale of the example as "
            "its critical batch (κ = 1).",
            "theory.md", ("b_crit", "noise_scale", "kappa"), f"{MCCANDLISH}, eq. 2.3 and 2.11",
        ),
        "learn-noise-card": How(
            "Noise scale tr Σ ÷ |G|² over windows of the newest run of this server that is measured clearly, with its "
            "95 % Fieller interval. Where there is none, a made-up run.",
            "estimators.md", ("b_simple", "window", "resolved"), f"{MCCANDLISH}, appendix A.1",
        ),
    }
)  # fmt: skip
