"""What to set with the recommended batch besides it, from what the run's config tells of its optimizer."""

import math
from collections.abc import Mapping
from typing import Any

from noisescale_core.advice.parts.parts import Interval, RunSetting
from noisescale_core.theory.change import BatchChange
from noisescale_core.theory.learning_rate import RuleFamily, family_of
from noisescale_core.theory.rescaling import Hyperparameters, Rescaling, rescale_all

LARGEST_FACTOR = 1e6
"""No published rule was tried on a larger change of the batch."""

_SGD_NAMES = {"momentum": ("momentum",)}
_ADAM_NAMES = {
    "beta1": ("beta1", "adam_beta1"),
    "beta2": ("beta2", "adam_beta2"),
    "epsilon": ("epsilon", "adam_epsilon", "eps", "adam_eps"),
}
_ALL_NAMES = {"weight_decay": ("weight_decay",), "warmup_steps": ("warmup_steps", "warmup_iters", "lr_warmup_iters")}


def rescaling(
    run: RunSetting, config: Mapping[str, Any], critical: Interval | None, to_batch: float | None
) -> Rescaling | None:
    """The whole set that goes with a batch; None without a learning rate, a batch or a rule that reaches so far.

    Args:
        run: As it stands.
        config: What the run was described with, by the names that trainers use; what it does not say is left out.
        critical: B_crit, in examples.
        to_batch: In examples.
    """
    rate, batch = run.learning_rate, run.batch_size
    if rate is None or not 0 < rate < math.inf or not batch or to_batch is None or critical is None:
        return None
    if not 1 / LARGEST_FACTOR < to_batch / batch < LARGEST_FACTOR:
        return None
    change = BatchChange(from_batch=batch, to_batch=to_batch, noise_scale=critical.value)
    return rescale_all(run.optimizer or "unknown", _hyperparameters(run.optimizer, rate, config), change)


def _hyperparameters(optimizer: str | None, rate: float, config: Mapping[str, Any]) -> Hyperparameters:
    family = family_of(optimizer)
    own = _SGD_NAMES if family is RuleFamily.SGD else _ADAM_NAMES if family is RuleFamily.ADAM else {}
    found = {
        field: next((config[name] for name in names if _is_usable(field, config.get(name))), None)
        for field, names in (own | _ALL_NAMES).items()
    }
    return Hyperparameters(learning_rate=rate, **found)


def _is_usable(field: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return False
    return value < 1 or field not in ("momentum", "beta1", "beta2")
