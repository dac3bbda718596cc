"""How the noise scale moves with learning rate and batch at equal loss: exponents g and h.

log φ = a + b log L + g log ε + h log B. By temperature alone g = -1 and h = 1 (McCandlish et al. 2018,
arXiv:1812.06162, appendix C); in the language models of Gray et al. 2024, arXiv:2411.00999, h was 0. They are measured
apart, where a task's runs differ enough in either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisescale_core.theory.temperature import Exponents
from noisescale_server.analysis.comparison.equal_loss import LossWindow, NotKnown
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.forecast.laws.clustered_regression import regress

Array = NDArray[np.float64]

FEWEST_RUNS = 4
FEWEST_WINDOWS = 12
LEAST_RANGE = 1.5
"""Largest over smallest learning rate or batch below which its exponent is not asked for."""


@dataclass(frozen=True, slots=True)
class TemperatureEffect:
    """The exponents of one task.

    Attributes:
        learning_rate: g; None where all runs had about one learning rate.
        batch: h; None where all runs had about one batch.
        loss_power: d log φ / d log L at equal learning rate and batch.
        num_runs: Clusters.
        num_windows: Resolved windows, those after a decay included.
    """

    learning_rate: Estimate | None
    batch: Estimate | None
    loss_power: Estimate
    num_runs: int
    num_windows: int

    def exponents(self) -> Exponents:
        """As `noisescale_core.theory.temperature` takes them; what was not measured is 0."""
        g = 0.0 if self.learning_rate is None else self.learning_rate.value
        h = 0.0 if self.batch is None else self.batch.value
        return Exponents(g, h, f"measured over {self.num_runs} runs of the task")


def temperature_effect(runs: Sequence[Sequence[LossWindow]], *, level: float = 0.95) -> TemperatureEffect | NotKnown:
    """The exponents over runs of one task, each a sequence of windows, or what is missing."""
    windows = [
        (number, window, window.learning_rate, window.batch_size)
        for number, run in enumerate(runs)
        for window in run
        if window.loss > 0 and window.learning_rate and window.batch_size
    ]
    num_runs = len({number for number, *_ in windows})
    if num_runs < FEWEST_RUNS or len(windows) < FEWEST_WINDOWS:
        return NotKnown(
            f"{num_runs} runs have {len(windows)} resolved windows with a learning rate and a batch size; "
            f"{FEWEST_RUNS} runs with {FEWEST_WINDOWS} windows are needed."
        )
    rates = np.array([rate for _, _, rate, _ in windows], dtype=float)
    batches = np.array([batch for _, _, _, batch in windows], dtype=float)
    columns: dict[str, Array] = {"loss": np.log([window.loss for _, window, _, _ in windows])}
    columns |= {name: np.log(values) for name, values in (("lr", rates), ("batch", batches)) if _moves(values)}
    if len(columns) == 1:
        return NotKnown("All runs had about one learning rate and one batch size: vary one by a factor of 2 or more.")
    if np.linalg.cond(np.corrcoef(list(columns.values()))) > _MOST_ALIKE:
        return NotKnown(
            "Loss, learning rate and batch size changed together, so that their parts cannot be told: vary one alone."
        )
    found = regress(
        columns,
        np.array([window.log_value for _, window, _, _ in windows]),
        np.array([window.standard_error for _, window, _, _ in windows]),
        [number for number, *_ in windows],
    )
    return TemperatureEffect(
        learning_rate=found.estimate("lr", level) if "lr" in columns else None,
        batch=found.estimate("batch", level) if "batch" in columns else None,
        loss_power=found.estimate("loss", level),
        num_runs=num_runs,
        num_windows=len(windows),
    )


_MOST_ALIKE = 1e4


def _moves(values: Array) -> bool:
    return float(values.max() / values.min()) >= LEAST_RANGE
