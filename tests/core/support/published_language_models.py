"""Published sweeps and critical batches of language models, and what a batch costs on such a sweep."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

DATA = Path(__file__).parents[3] / "server/src/noisescale_server/data/language_model_batch_sizes.json"

PRICES = (1 / 16, 1 / 4, 1, 4, 16)
"""What a step saved is worth, in critical batches of the sweep."""


@dataclass(frozen=True)
class Sweep:
    """Steps to one loss at several batch sizes; B_crit and E_min from the best batch upwards."""

    batches: np.ndarray
    steps: np.ndarray
    critical: float
    fewest_tokens: float

    def steps_at(self, batch):
        """Between the points on straight lines in the logarithms."""
        return np.exp(np.interp(np.log(batch), np.log(self.batches), np.log(self.steps)))

    def costs(self, price):
        """Batches of the range, and what the run costs at each, in tokens."""
        batches = np.geomspace(self.batches[0], self.batches[-1], 400)
        return batches, self.steps_at(batches) * (price + batches)

    def planned(self, price):
        """Tokens of the run at the batch that is best at this price."""
        batches, costs = self.costs(price)
        best = batches[costs.argmin()]
        return float(best * self.steps_at(best))


def regret(sweep, price, batch):
    """What a batch costs more than the best one, as a share; outside of the range its end's steps."""
    _, costs = sweep.costs(price)
    return float(sweep.steps_at(batch) * (price + batch) / costs.min() - 1)


def sweeps():
    """Zhang et al. 2024: five sizes of model at a Chinchilla loss each."""
    return [_sweep(entry) for entry in _data()["sweeps"]]


def points_by_source():
    """(tokens to the loss at a small batch, B_crit), both in tokens: those read in the sources themselves."""
    found = {"zhang2024": [(one.fewest_tokens, one.critical) for one in sweeps()]}
    for entry in _data()["critical_batch_points"]:
        if entry["verified"]:
            point = (entry["tokens_at_target_min"], entry["critical_batch_tokens"])
            found.setdefault(entry["source"], []).append(point)
    return found


def points():
    """All of them."""
    return [point for group in points_by_source().values() for point in group]


def _sweep(entry):
    batches = np.array(entry["batch_size_sequences"]) * float(entry["sequence_length"])
    steps = np.array(entry["steps_to_target"], dtype=float)
    tokens = batches * steps
    right = slice(int(tokens.argmin()), None)

    def misses(log_terms):
        fewest, critical = np.exp(log_terms)
        return np.log(fewest * (1 + batches[right] / critical)) - np.log(tokens[right])

    fewest, critical = np.exp(least_squares(misses, [math.log(tokens.min()), math.log(1e6)]).x)
    return Sweep(batches, steps, float(critical), float(fewest))


def _data():
    return json.loads(DATA.read_text(encoding="utf-8"))
