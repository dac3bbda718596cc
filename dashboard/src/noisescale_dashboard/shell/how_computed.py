"""How what a card shows is computed, in plain words: what "How this is computed" in its menu says.

Cards of sweeps, plans, costs and reproductions stand here, those of runs in `how_of_runs`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.shell.how import MCCANDLISH, How
from noisescale_dashboard.shell.how_of_runs import COMPARE, LEARN, OVERVIEW, RUN

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
        "sweep-between-card": How(
            "Squared gradient norms of runs at equal loss against 1 ÷ batch size: a line, |G|² at its left end, slope "
            "tr Σ. The runs' parameters differ, for which at least 15 % are allowed; the interval is Fieller's.",
            "estimators.md", ("noise_scale",), f"{MCCANDLISH}, appendix A.1",
        ),
        "sweep-followed-card": How(
            "A step at batch B makes 1 ÷ (1 + κ φ ÷ B) of the progress of a step of unlimited batch, and S_min of "
            "those reach the target. Summed over a run's windows up to the target, that is solved for κ. A run whose "
            "learning rate at the target was more than 2 × off the sweep's best says nothing.",
            "calibration.md", ("kappa", "calibrated", "target"), f"{MCCANDLISH}, appendix D.1",
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
        "planner-beyond-card": How(
            "Devices are divided evenly; each run takes S_min + E_min ÷ B steps of its own batch and puts B_crit ÷ "
            "(B_crit + B) of its examples to use. The best of k is the expected largest of k normal values; the "
            "chance of k random trials to hold one of the best 5 % is 1 − 0.95^k.",
            "planner.md", ("b_crit", "example_efficiency"),
            "Bergstra and Bengio 2012, Journal of Machine Learning Research 13",
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
COST: Final[Mapping[str, How]] = MappingProxyType(
    {
        "sweep-search-card": How(
            "Hours of the trials whose processes are stored, times their devices and prices. Random: the best of n "
            "over all draws without replacement, exactly; grid: n rates evenly spaced; informed: outwards from the "
            "best rate of the batch size below × √ of the ratio. B_crit with n trials is of 400 draws.",
            "cost.md", ("b_crit", "target"),
        ),
        "run-time-card": How(
            "Shares are logged by the job. A part that went whole would speed a step up by 1 ÷ (1 − share), the most "
            "that any lever brings. Techniques are read from the config and from batch and rate as they were logged.",
            "cost.md", ("global_batch",), "Amdahl 1967; Chen et al. 2016, arXiv:1604.06174",
        ),
        "cost-money": How(
            "Each training that reached the target, by the hours and USD it took. Line: the Pareto front, where less "
            "money is to be had for more hours only. Trainings without a price are in the table and not here.",
            "cost.md", ("b_crit",), "DAWNBench, rule of its README",
        ),
        "cost-records": How(
            "A record is a training that took fewer hours than all of earlier days; of one day only its best counts.",
            "cost.md", ("b_crit",),
        ),
        "cost-factors-card": How(
            "Hours or USD of the best of the first day, divided by the best since. On the same hardware: among "
            "trainings on as many devices of one kind. Prices are as each training says.",
            "cost.md", ("b_crit",),
        ),
        "cost-steps-card": How(
            "Hours are passes over the data, divided by devices and by passes per device-hour, so the logs add up. A "
            "larger batch takes 1 + B ÷ B_crit times the examples; kinds of devices are compared by trainings that "
            "differ in nothing else. What cannot be parted stays together.",
            "cost.md", ("b_crit",), f"{MCCANDLISH}, eq. 2.11",
        ),
        "cost-table-card": How(
            "Hours by the clock, from the start of the first process to the first value at or past the target. "
            "Device-hours and USD leave pauses between processes out, and hold neither search nor people.",
            "cost.md", ("b_crit",),
        ),
        "cost-growth": How(
            "Compute is 6 × parameters × units where the config says num_parameters, else device-hours × peak × "
            "utilisation. The doubling time is of the median slope over all pairs of runs (Theil and Sen), with Sen's "
            "95 % interval, which outliers and gaps do not move.",
            "cost.md", ("b_crit",), "OpenAI 2018, AI and Compute",
        ),
        "cost-devices-card": How(
            "Peak and memory of kinds of devices as their makers say, and how fast they double by the year of release: "
            "the same slope and interval as of runs, over the kinds in the table, which are not all that there are.",
            "cost.md", ("b_crit",),
        ),
        "cost-compute-card": How(
            "A PF-day is 10¹⁵ operations a second for a day. Each row says from what it was counted.",
            "cost.md", ("b_crit",),
        ),
    }
)  # fmt: skip

HOW: Final[Mapping[str, How]] = MappingProxyType(
    {**OVERVIEW, **RUN, **COMPARE, **SWEEPS, **PLANNER, **COST, **REPRODUCE, **LEARN}
)
"""Card → how what it shows is computed."""
NOTHING_COMPUTED: Final = frozenset(
    {
        "planner-limits-card",
        "run-comments-card",
        "reproduce-stored-card",
        "settings-connection-title",
        "settings-defaults-title",
        "settings-keeping-title",
        "settings-alerts-title",
        "settings-keys-title",
        "settings-people-title",
        "settings-audit-title",
        "settings-data-title",
        "settings-health-title",
    }
)
"""Cards that hold what people have set or stored, and no number of ours."""
