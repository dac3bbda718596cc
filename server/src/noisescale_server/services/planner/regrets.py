"""What policies cost in training on tasks that no design has seen: published with `docs/policies.md`.

The numbers are those of `benchmarks/results/policies.csv` (held-out tasks, constant learning rate, r = B_crit); a test
holds them against the file.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredRegret:
    """Policy regret over runs: cost to the target over that of the best constant run with tuned rate, less one.

    Attributes:
        policy: As the benchmark calls it.
        median: Over all starts, whose batch is off by up to 8 × and whose rate by up to 4 ×, as a share.
        p90: The worst tenth of these begins here; 7 is a run that missed its target.
        median_right: Over runs that started right.
        p90_right: The same.
        num_runs: Runs behind median and p90.
        num_runs_right: Runs behind the other two.
        source: Where it stands.
    """

    policy: str
    median: float
    p90: float
    median_right: float
    p90_right: float
    num_runs: int = 252
    num_runs_right: int = 21
    source: str = "docs/policies.md, held-out tasks, constant rate"


MEASURED = {
    "constant": MeasuredRegret("keep", 2.26449, 7.0, 0.0502151, 0.502243),
    "follow": MeasuredRegret("B = sqrt(r phi)", 1.08788, 7.0, 0.094451, 1.05622),
    "doublings": MeasuredRegret("doublings (Merrill)", 3.02051, 7.0, 0.899038, 2.04978),
    "noisescale": MeasuredRegret("ours", 0.633649, 1.88526, 0.395092, 1.0422),
}
"""By the name of the policy. Left out, as other versions of them were measured: fixed ramps, a late switch, Seesaw at
a constant rate, and √(r φ) in stages without the guard."""
