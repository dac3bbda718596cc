"""How what a card shows is computed, in plain words: what "How this is computed" in its menu says."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MCCANDLISH = "McCandlish et al. 2018, arXiv:1812.06162"


@dataclass(frozen=True, slots=True)
class How:
    """One explanation.

    Attributes:
        text: One to three sentences.
        page: Where `docs/` says it in full.
        words: The words of the glossary that it rests on.
        source: Paper with section or equation; empty where the product alone defines it.
    """

    text: str
    page: str
    words: tuple[str, ...]
    source: str = ""

    @property
    def where(self) -> str:
        """Where to read on, in a line."""
        source = f"{self.source}. " if self.source else ""
        glossary = f"; glossary: {', '.join(self.words)}" if self.words else ""
        return f"{source}In full: docs/{self.page}{glossary}."


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
        "runs-groups-card": How(
            "Runs with the same value, counted by the server. Medians are over the resolved noise scales of the newest "
            "windows, the batches in use, and the newest losses.",
            "rest.md", ("noise_scale", "resolved"),
        ),
        "run-noise-card": How(
            "Squared gradient norms at two batch sizes give the signal |G|² and the noise tr Σ of each step; both are "
            "averaged over a window and then divided. The band is the 95 % Fieller interval of that ratio: where |G|² "
            "cannot be told from zero there is a lower bound and no number. Other kinds than simple weigh the gradient "
            "otherwise: docs/kinds.md.",
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

SWEEPS: Final[Mapping[str, How]] = MappingProxyType(
    {
        "sweeps-card": How(
            "B_crit = E_min ÷ S_min of the sweep's hardest target, from the fit "
            "S = S_min (1 + B_crit ÷ B), with its 95 % profile-likelihood interval; a bound where the fit is refused.",
            "sweeps.md", ("sweep", "b_crit", "target"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "record-odds": How(
            "Runs of sweeps that were fitted, advised at a tenth, a quarter and half of their plan by the odds of a "
            "task that nobody has calibrated, at five prices of a step. A change came true where its batch is cheaper "
            "than the one in use by the sweep's B_crit.",
            "deciding.md", ("odds", "b_crit"),
        ),
        "record-shares": How(
            "Decided is raise, lower or keep; a change is right where its batch is cheaper, keep where the batch in "
            "use costs at most an eighth more than the best one. Costs are r S + E to the same loss by the sweep's "
            "B_crit; B = price knows nothing of the run.",
            "deciding.md", ("odds", "decision"),
        ),
        "published-list": How(
            "MLPerf's reference convergence points and sweeps of language models, fitted as one's own are: "
            "S = S_min (1 + B_crit ÷ B) to log steps, 95 % profile-likelihood intervals; where examples rise again at "
            "small batches that rise is fitted, too, and left out of B_crit.",
            "sweeps.md", ("b_crit",), f"{MCCANDLISH}, eq. 2.11; data: MLPerf Training, Zhang et al. 2024",
        ),
        "published-batches-card": How(
            "E_min ÷ S_min in tokens, as published or computed from the published runs by the hyperbola from the best "
            "batch size upwards; only what was read in its source.",
            "sweeps.md", ("b_crit",), "Li et al. 2025, arXiv:2503.04715; data: MLPerf Training",
        ),
        "published-card": How(
            "Published data to the target at each batch size, with the hyperbola E = E_min + S_min B of the fit and "
            "its band; E_min and S_min come from all batch sizes at once.",
            "sweeps.md", ("b_crit",), f"{MCCANDLISH}, eq. 2.11; data: MLPerf Training",
        ),
        "sweep-hyperbola-card": How(
            "Measured: steps S and examples E = B S to the target at the best learning rate of each batch size. The "
            "curve is (S ÷ S_min − 1)(E ÷ E_min − 1) = 1, fitted to log steps; at + half of each is spent twice over.",
            "sweeps.md", ("target", "b_crit", "tuned run"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "sweep-steps-card": How(
            "Measured steps to the target; whiskers are the evaluations around the crossing. The curve is "
            "S = S_min (1 + B_crit ÷ B) with the 95 % band of the curve; regimes are by B ÷ B_crit at 0.1 and 10, or "
            "by the slope between neighbours.",
            "sweeps.md", ("regime", "b_crit"), f"{MCCANDLISH}, eq. 2.11; regimes: Shallue et al. 2018",
        ),
        "sweep-targets-card": How(
            "B_crit of each target from its own fit, with 95 % profile-likelihood intervals; open arrows are the "
            "bounds of refused fits. The law through them takes all targets at once, since the same runs cross them.",
            "laws.md", ("b_crit", "target", "cluster"), "Kaplan et al. 2020, arXiv:2001.08361, eq. 5.3",
        ),
        "sweep-rates-card": How(
            "The learning rate that took fewest steps to the target at each batch size; whiskers reach half way to "
            "the next rates tried. Curves are compared by AICc, and only those that the data speak for are drawn.",
            "laws.md", ("tuned run", "anchor"), f"{MCCANDLISH}, eq. 2.6; Li et al. 2024, eq. 2",
        ),
        "sweep-residuals-card": How(
            "Measured steps ÷ steps of the fit at each batch size; the band is two standard deviations of the scatter "
            "that the fit has found. A bend that leaves the band speaks against the model.",
            "sweeps.md", ("rms factor",), f"{MCCANDLISH}, eq. 2.11",
        ),
        "sweep-fit-card": How(
            "S = S_min (1 + B_crit ÷ B), fitted to log steps by maximum likelihood; runs that did not arrive count by "
            "the probability of taking longer. All intervals are 95 % profile likelihood, so a one-sided sweep gives "
            "a bound.",
            "sweeps.md", ("b_crit", "target", "infeasible"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "sweep-quality-card": How(
            "Metric at the best rate of each batch size minus that of the smallest one, at equal steps, at equal "
            "examples, and with all the time that was given. Intervals are Welch's, over seeds.",
            "sweeps.md", ("sweep",),
        ),
        "sweep-plan-card": How(
            "Runs are added one by one where the expected variance of log B_crit falls most for each example spent, "
            "until its interval is as narrow as you asked. The forecast holds if curve and scatter stay as they are.",
            "rest.md", ("b_crit", "sweep"),
        ),
        "sweep-arms-card": How(
            "Mean difference of the held-out loss from the present setting, paired by batch, with one-sided 95 % "
            "limits by Student's t. An arm is as good where its upper limit is within the margin.",
            "sweeps.md", ("branch", "margin", "as_good"), "Merrill et al. 2025, arXiv:2505.23971",
        ),
        "sweep-arms-table": How(
            "Differences of the held-out loss are paired by batch, their limits are one-sided. The local critical "
            "batch lies between the largest batch that did not lose and the smallest that did, at equal examples.",
            "sweeps.md", ("branch", "margin", "b_crit"), "Merrill et al. 2025, arXiv:2505.23971",
        ),
    }
)  # fmt: skip

PLANNER: Final[Mapping[str, How]] = MappingProxyType(
    {
        "planner-pareto-card": How(
            "Predicted steps S_min + E_min ÷ B and examples E_min + S_min B, times the time and the price of a step. "
            "The band is the 95 % interval by the measurement and by κ; devices are added with the batch unless you "
            "say that they stay.",
            "theory.md", ("b_crit", "kappa", "pace"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "planner-binds-card": How(
            "Each limit allows a range of batches; the bill has one minimum, so the best batch inside them is the best "
            "one, moved to the nearest end. The limit of that end binds.",
            "theory.md", ("binding limit", "exchange_rate"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "planner-table-card": How(
            "Steps S_min + E_min ÷ B of each batch, and from them time, examples and cost, each with its 95 % interval "
            "by measurement and by κ. The time and the price of a step are taken as exact.",
            "rest.md", ("b_crit", "pace"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "planner-what-if-card": How(
            "The same prediction at other batches: twice the recommended one, the one that half the money pays for, "
            "the cheapest and the fastest that meet the other limits. Fastest is within 10 % of the least time where "
            "no limit ends it.",
            "rest.md", ("binding limit",), f"{MCCANDLISH}, eq. 2.11",
        ),
        "planner-policies-card": How(
            "Each schedule is charged ∫ (r (1 + φ ÷ B) + B + φ) ds along one forecast of the noise scale φ. The regret "
            "beside it is measured: what training held-out tasks by that policy cost over the best constant batch.",
            "policies.md", ("policy regret", "ideal_steps", "growth exponent"), f"{MCCANDLISH}, eq. D.1 and D.6",
        ),
    }
)  # fmt: skip

REPRODUCE: Final[Mapping[str, How]] = MappingProxyType(
    {
        "reproduce-scatter-card": How(
            "Each task's hardest target that counts: the mean noise scale along the tuned run nearest B_crit, against "
            "B_crit = E_min ÷ S_min of its sweep with a tuned learning rate at each batch size. The band is × and ÷ "
            "the rms factor of the published tasks about y = x.",
            "reproduce.md", ("b_crit", "tuned run", "near_critical", "rms factor"), f"{MCCANDLISH}, table 1",
        ),
        "reproduce-statistics-card": How(
            "Of the logarithms of noise scale and critical batch over tasks: r² about the fit and about y = x, slope, "
            "rms factor, shares within a factor. Intervals are from drawing the tasks again with replacement.",
            "reproduce.md", ("rms factor", "kappa"),
        ),
        "reproduce-exclusions-card": How(
            "A target counts where S_min is at least 5 steps, the interval of B_crit is closed, and at least half of "
            "the run up to it has a resolved noise scale.",
            "reproduce.md", ("target", "resolved"),
        ),
        "reproduce-targets-card": How(
            "S_min and B_crit by least squares in the logarithm of the steps, with the profile interval; the noise "
            "scale's interval adds up the scatter of its windows. κ is B_crit ÷ noise scale.",
            "reproduce.md", ("b_crit", "kappa", "near_critical", "window"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "reproduce-series-card": How(
            "The same figures for each average of the noise scale, for hardest or all targets, and without tasks of "
            "our own or with noise in the labels. Fewer than five tasks have none.",
            "reproduce.md", ("near_critical", "ideal_steps", "rms factor"),
        ),
        "reproduce-hooks-card": How(
            "Each measured window against the same window computed from every single example's gradient of the same "
            "steps. Windows whose interval is open are not compared.",
            "reproduce.md", ("window", "b_simple"), f"{MCCANDLISH}, appendix A.1",
        ),
        "reproduce-quadratics-card": How(
            "On noisy quadratics |G|², tr Σ and the Hessian are known: measured windows against tr Σ ÷ |G|², and "
            "beside it tr(HΣ) ÷ GᵀHG, to which B_crit belongs.",
            "reproduce.md", ("b_simple", "b_hessian"), f"{MCCANDLISH}, eq. 2.8 and 2.9",
        ),
        "reproduce-growth-card": How(
            "Mean noise scale of the windows in the last quarter of the tuned run nearest B_crit, over that of the "
            "first quarter, and at which share of the run it is lowest.",
            "reproduce.md", ("tuned run", "window"), f"{MCCANDLISH}, section 4.3",
        ),
        "reproduce-loss-card": How(
            "Least squares of the logarithm of the windows' noise scales over that of the loss, with an interval for "
            "independent windows; of model sizes, over both loss and size.",
            "reproduce.md", ("growth exponent", "window"), f"{MCCANDLISH}, section 4.3",
        ),
        "reproduce-misfits-card": How(
            "Measured steps over S_min (1 + B_crit ÷ B): e to the root mean square of its logarithm, and the batch "
            "size that lies farthest off.",
            "reproduce.md", ("b_crit", "target"), f"{MCCANDLISH}, eq. 2.11",
        ),
        "reproduce-rates-card": How(
            "Slope of the logarithm of the best learning rate over that of the batch size, below and above B_crit, "
            "from three batch sizes on.",
            "reproduce.md", ("b_crit",), f"{MCCANDLISH}, eq. 2.10",
        ),
        "reproduce-adaptive-card": How(
            "Steps plus examples ÷ B_crit to the hardest target with B = √(B_crit × noise scale), over those of the "
            "constant batch: foreseen by the theory, and measured by training. The schedule knows the whole run.",
            "reproduce.md", ("b_crit", "exchange_rate"), f"{MCCANDLISH}, appendix D",
        ),
        "reproduce-policies-card": How(
            "Runs start with the batch and the learning rate off, follow a policy and pay for all they compute until "
            "the target. Regret is what they paid over the best constant batch, less one; cost over keeping is a ratio "
            "of sums.",
            "policies.md", ("policy regret",),
        ),
        "reproduce-recommendations-card": How(
            "At shares of runs that nobody advised the recommendation is computed from what is known then, and "
            "compared with the B_crit of a sweep: whether its interval holds it, whether it decides, and which way.",
            "policies.md", ("decision", "kappa", "resolved"),
        ),
    }
)  # fmt: skip

HOW: Final[Mapping[str, How]] = MappingProxyType({**OVERVIEW, **RUN, **COMPARE, **SWEEPS, **PLANNER, **REPRODUCE})
"""Card → how what it shows is computed."""
NOTHING_COMPUTED: Final = frozenset(
    {
        "planner-limits-card",
        "reproduce-stored-card",
        "settings-connection-title",
        "settings-keys-title",
        "settings-people-title",
        "settings-audit-title",
    }
)
"""Cards that hold what people have set or stored, and no number of ours."""
