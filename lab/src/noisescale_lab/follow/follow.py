"""`noisescale.follow`: batch size and learning rate of a run under way, by the measured policy; dry run first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from noisescale.guard import announce
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError, DomainError
from noisescale_core.theory.learning_rate import RuleFamily, family_of
from noisescale_core.theory.prices import ExchangeRate, from_preference, worth_examples
from noisescale_lab.follow.agreement import agreement
from noisescale_lab.follow.batches import Batches
from noisescale_lab.follow.follower import Follower
from noisescale_lab.follow.look import Plan
from noisescale_lab.follow.memory import Settings
from noisescale_lab.follow.scheduled_rates import COMPANIONS

if TYPE_CHECKING:
    import torch

Permission = Literal["batch", "rate", "undo", "betas", "epsilon", "weight_decay"]
USUAL: tuple[Permission, ...] = ("batch", "rate", "undo")
BALANCED = 0.5

READS_LOW = (
    "noise scales of Adam-trained language models can read far below the critical batch (Merrill et al. 2025, "
    "arXiv:2505.23971): confirm a large change by a branch, docs/sweeps.md"
)


def follow(
    run: Run | None,
    optimizer: "torch.optim.Optimizer",
    *,
    batches: Batches | None = None,
    scheduler: object | None = None,
    price: ExchangeRate | float | None = None,
    planned_steps: float | None = None,
    may: Sequence[Permission] = USUAL,
    dry_run: bool = True,
    progress: Callable[[str], None] = announce,
) -> Follower:
    """Let batch size and learning rate follow what is measured: changes that are likely to pay, undone where they fail.

    In a job of several processes every rank calls this after `init_process_group`, and `step()` equally often.

    Args:
        run: That is watched; None: the active one.
        optimizer: Whose learning rates are changed, each group by its own.
        batches: What the job can change its batch to; None: the batch stays.
        scheduler: What sets the learning rate; None: nothing does, or the loop multiplies its rate by
            `learning_rate_factor`.
        price: What a step is worth, in examples or by a function of `noisescale_core.theory.prices`; None: 1 % of the
            steps is worth 1 % of the examples.
        planned_steps: Length of the training at the present batch; None: of the run, where it is known. Without a plan
            the learning rate is not judged.
        may: What may be done: "batch", "rate"; "undo", a copy of weights and optimizer states is kept while a raise is
            on probation; and what else may follow the batch, "betas", "epsilon", "weight_decay".
        dry_run: Only say what would be done.
        progress: Is told each decision.

    Raises:
        ConfigError: For wrong arguments.
    """
    run = run or active_run.active()
    unknown = [one for one in may if one not in get_args(Permission)]
    if unknown or isinstance(may, str):
        raise ConfigError(f"may must be a list of {', '.join(get_args(Permission))}, got {may!r}")
    if batches is not None and not dry_run and batches.largest is None:
        raise ConfigError(
            "batches.largest must be named when dry_run=False: the largest that you would ever train with"
        )
    plan = Plan(
        optimizer=type(getattr(optimizer, "optimizer", optimizer)).__name__,
        momentum=float(optimizer.param_groups[0].get("momentum") or 0.0),
        first_batch=_first_batch(batches, run),
        price=_price(price),
        planned_steps=planned_steps or run.description.planned_steps,
        settings=Settings(
            may_restart=False,
            may_change_batch=batches is not None and "batch" in may,
            may_change_rate="rate" in may,
            may_undo="undo" in may,
        ),
        possible=None if batches is None else batches.possible(),
        is_dry_run=dry_run,
    )
    agreed = agreement()
    if batches is not None and family_of(plan.optimizer) is RuleFamily.ADAM and agreed.is_first:
        progress(READS_LOW)
    also = [one for one in COMPANIONS if one in may]
    return Follower(run, optimizer, scheduler, plan, agreed, batches=batches, also=also, progress=progress)


def _first_batch(batches: Batches | None, run: Run) -> int:
    """Where the batch is not to change, the one in use, once it is known; 1 stands for it until then."""
    if batches is not None:
        return batches.now
    standing = run.standing()
    return 1 if standing is None or not standing.batch_size else round(standing.batch_size)


def _price(price: ExchangeRate | float | None) -> ExchangeRate:
    """What a step is worth.

    Raises:
        ConfigError: If the number is none.
    """
    if price is None:
        return from_preference(BALANCED)
    if isinstance(price, ExchangeRate):
        return price
    try:
        return worth_examples(price)
    except DomainError as problem:
        raise ConfigError(f"price: {problem}") from problem
