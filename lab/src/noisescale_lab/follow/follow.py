"""`noisescale.follow`: batch size and learning rate of a run under way, by the measured policy; dry run first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale import active_run
from noisescale.guard import announce
from noisescale.run import Run
from noisescale_core.advice.words.limits import sentence
from noisescale_core.errors import ConfigError, DomainError
from noisescale_core.theory.learning_rate import Family, family_of
from noisescale_core.theory.limits import Limit, LimitKind
from noisescale_core.theory.prices import ExchangeRate, worth_examples
from noisescale_lab.follow.agreement import agreement, num_ranks
from noisescale_lab.follow.companions import COMPANIONS, Companion
from noisescale_lab.follow.follower import Follower
from noisescale_lab.follow.look import Plan
from noisescale_lab.follow.policy import Settings
from noisescale_lab.follow.possible_batches import PossibleBatches

if TYPE_CHECKING:
    import torch

MEASURED_HYSTERESIS = Settings().hysteresis

READS_LOW = (
    "noise scales of Adam-trained language models can read far below the critical batch (Merrill et al. 2025, "
    "arXiv:2505.23971): confirm a large change by a branch, docs/sweeps.md"
)


def follow(
    run: Run | None,
    optimizer: "torch.optim.Optimizer",
    *,
    batch_size: int,
    examples_per_step: float | None = None,
    price: ExchangeRate | None = None,
    planned_steps: float | None = None,
    micro_batch_size: int = 1,
    num_devices: int | None = None,
    multiple_of: int | None = None,
    smallest_batch: int | None = None,
    largest_batch: int | None = None,
    limits: Sequence[Limit] = (),
    scheduler: object | None = None,
    set_batch_size: Callable[[int], object] | None = None,
    may_change: Callable[[int], bool] | None = None,
    also: Sequence[Companion] = (),
    may_shrink: bool = False,
    dry_run: bool = True,
    early: bool = False,
    hysteresis: float = MEASURED_HYSTERESIS,
    name: str | None = None,
    progress: Callable[[str], None] = announce,
) -> Follower:
    """Let batch size and learning rate follow the noise scale: towards √(r φ), and never below "resolved".

    In a job of several processes every rank calls this after `init_process_group`, and `step()` equally often.

    Args:
        run: That is watched; None: the active one.
        optimizer: Whose learning rates go along, each group by its own.
        batch_size: The present global batch, in examples.
        examples_per_step: r: how many examples one would spend to save one optimizer step.
        price: Instead of it, by a function of `noisescale_core.theory.prices`, in words; a preference becomes a number
            at the first resolved noise scale and stays that.
        planned_steps: Length of the training at the present batch; None: of the run, where it is known.
        micro_batch_size: What one device puts through one backward; batches are whole micro-batches of all devices.
        num_devices: Data-parallel devices; None: the processes of the job.
        multiple_of: Examples that every batch is a multiple of; None: one micro-batch on each device.
        smallest_batch: None: one micro-batch a device.
        largest_batch: Has to be named before anything is changed.
        limits: Further ones, by `noisescale_core.theory.limits`: the data set, a deadline.
        scheduler: What sets the learning rate; None: nothing does, or the loop multiplies its rate by
            `learning_rate_factor`.
        set_batch_size: Told the new global batch between two steps; None: the loop reads `accumulation_steps`.
        may_change: Whether the job can take on that batch now; until then a decision waits.
        also: What else follows the batch: "betas", "epsilon", "weight_decay", by the rules of `docs/following.md`.
        may_shrink: Whether the batch may become smaller.
        dry_run: Only say what would be done.
        early: Act below a resolved noise scale, too: on a tentative one, on a lower bound that says the batch is too
            small, and on a few steps that say it is far too large, as the policy did where it was measured.
        hysteresis: Batches closer than this factor are not worth a change.
        name: Of the optimizer, where the run watches several.
        progress: Is told each decision.

    Raises:
        ConfigError: For wrong or missing arguments.
    """
    run = run or active_run.active()
    devices = num_devices or num_ranks()
    whole = micro_batch_size * devices
    given = (*limits, *_range(smallest_batch, largest_batch, multiple_of or whole))
    _refuse(batch_size, whole, multiple_of or whole, given, also, hysteresis)
    if not dry_run and largest_batch is None:
        raise ConfigError("largest_batch must be named when dry_run=False: the largest that you would ever train with")
    plan = Plan(
        optimizer=type(getattr(optimizer, "optimizer", optimizer)).__name__,
        first_batch=batch_size,
        price=_price(examples_per_step, price),
        planned_steps=planned_steps or run.description.planned_steps,
        settings=Settings(may_restart=False, may_branch=False, hysteresis=hysteresis),
        possible=PossibleBatches(multiple_of or whole, given, may_shrink, hysteresis),
        is_dry_run=dry_run,
        acts_early=early,
    )
    agreed = agreement()
    if family_of(plan.optimizer) is Family.ADAM and agreed.is_first:
        progress(READS_LOW)
    return Follower(
        run,
        optimizer,
        scheduler,
        plan,
        agreed,
        examples_of_micro_batches=whole,
        set_batch_size=set_batch_size,
        may_change=may_change,
        also=also,
        name=name,
        progress=progress,
    )


def _price(examples_per_step: float | None, price: ExchangeRate | None) -> ExchangeRate:
    """What a step is worth.

    Raises:
        ConfigError: Unless it is said in exactly one way, by a number that is one.
    """
    if (examples_per_step is None) == (price is None):
        raise ConfigError(
            f"give one of examples_per_step and price, got {examples_per_step} and {price}: a noise scale recommends "
            "no batch before a step has a price; noisescale_core.theory.prices asks for it in words"
        )
    if price is not None:
        return price
    assert examples_per_step is not None
    try:
        return worth_examples(examples_per_step)
    except DomainError as problem:
        raise ConfigError(f"examples_per_step: {problem}") from problem


def _range(smallest: int | None, largest: int | None, multiple_of: int) -> list[Limit]:
    low = max(smallest or 0, multiple_of)
    found = [Limit(LimitKind.DEVICES, low, float("inf"), words=f"The smallest batch to train with is {low:,}.")]
    if largest is not None:
        found.append(Limit(LimitKind.MEMORY, 0.0, largest, words=f"The largest batch to train with is {largest:,}."))
    return found


def _refuse(
    batch_size: int,
    whole: int,
    multiple_of: int,
    limits: Sequence[Limit],
    also: Sequence[Companion],
    hysteresis: float,
) -> None:
    """Raise where an argument is wrong.

    Raises:
        ConfigError: With the field, its value, and the way out.
    """
    if whole < 1 or batch_size < whole or batch_size % whole:
        raise ConfigError(
            f"batch_size must be whole micro-batches of all devices, got {batch_size} and {whole} examples a "
            "micro-batch: give micro_batch_size and num_devices as they are"
        )
    if multiple_of < 1 or multiple_of % whole:
        raise ConfigError(
            f"multiple_of must be whole micro-batches of all devices, got {multiple_of}: use a multiple of {whole}"
        )
    outside = [sentence(limit) for limit in limits if not limit.low <= batch_size <= limit.high]
    if outside:
        raise ConfigError(f"batch_size must be within the limits, got {batch_size}: {' '.join(outside)}")
    unknown = [name for name in also if name not in COMPANIONS]
    if unknown or isinstance(also, str):
        raise ConfigError(f"also must be a list of {', '.join(COMPANIONS)}, got {also!r}")
    if not hysteresis > 1:
        raise ConfigError(f"hysteresis must be above 1, got {hysteresis:g}: 1.5 is what was measured")
