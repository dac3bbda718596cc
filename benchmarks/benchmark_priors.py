"""What the batch costs that is advised before a language model's first step, on published sweeps, beside other rules.

The law without one source, against that source's points; and five sweeps at five prices, known or off by a factor of 4.
"""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from results_file import Figure, write

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from noisescale_core.theory.language_models import LanguageModel, advise
from published_language_models import PRICES, points_by_source, regret, sweeps

Rule = Callable[[LanguageModel, float], float]

RULES: dict[str, Rule] = {
    "ours": lambda model, price: advise(model, tokens_per_step=price).batch.value,
    "B = r": lambda model, price: price,
    "B = max(r, B_opt)": lambda model, price: max(price, model.floor),
    "B = 0.5 M": lambda model, price: 5e5,
}
TARGETS = {("ours", "known"): ("at most 2", "at most 6"), ("ours", "off by 4"): ("at most 10", "at most 20")}
OFF = {"known": (1.0,), "off by 4": (0.25, 4.0)}


def left_out() -> Iterator[Figure]:
    """The law from the other sources, each with weight one, against the points of one."""
    groups = points_by_source()
    for name, group in groups.items():
        others = [
            (tokens, critical, 1 / len(of)) for one, of in groups.items() if one != name for tokens, critical in of
        ]
        tokens, critical, weights = np.array(others).T
        roots = np.sqrt(weights)
        design = np.column_stack([np.ones(len(tokens)), np.log(tokens / 1e10)])
        law = np.linalg.lstsq(design * roots[:, None], np.log(critical) * roots, rcond=None)[0]
        misses = [abs(math.log(one) - law[0] - law[1] * math.log(at / 1e10)) for at, one in group]
        rms = math.exp(math.sqrt(np.mean(np.square(misses))))
        yield Figure(f"B_crit of {name}, {len(group)} points, by a law from the others: root mean square", rms, "×")
        yield Figure(f"B_crit of {name}: worst", math.exp(max(misses)), "×", "below 4.4")


def costs() -> Iterator[Figure]:
    """Median and 90th percentile of the regret over sweeps and prices."""
    for known, factors in OFF.items():
        for name, rule in RULES.items():
            regrets = [
                regret(sweep, price, rule(LanguageModel(sweep.planned(price)), price * factor))
                for sweep in sweeps()
                for price in (share * sweep.critical for share in PRICES)
                for factor in factors
            ]
            targets = TARGETS.get((name, known), ("", ""))
            for word, share, target in zip(("median", "90th percentile"), (0.5, 0.9), targets, strict=True):
                value = 100 * float(np.quantile(regrets, share))
                yield Figure(f"{name}, price {known}: regret, {word}", value, "%", target)


if __name__ == "__main__":
    write("priors", [*left_out(), *costs()])
