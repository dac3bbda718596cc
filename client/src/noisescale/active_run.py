"""The functions of the package: they act on the active run, which is made on first use."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Unpack

from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.integrations.mirrors import Mirror, open_mirror
from noisescale.kernels.preference import PREFERENCE
from noisescale.recent_updates import NoiseScale
from noisescale.recommending.question import Asked
from noisescale.recommending.recommendation import Recommendation
from noisescale.run import Run

if TYPE_CHECKING:
    import torch

    from noisescale.capture.parameter_groups import Grouping
    from noisescale.capture.step_norms import Weighting
    from noisescale.capture.watch_options import Kind, LossReduction, SmallBatches
    from noisescale.estimators.nested_groups import NestedSizes, Tree

_active: list[Run] = []


def active() -> Run:
    """The run that was made last; one with settings from the environment where there is none."""
    return _active[-1] if _active else init()


def current() -> Run | None:
    """The run that was made last, unless it is finished; none is made."""
    return _active[-1] if _active and not _active[-1].is_finished else None


def unfinished() -> Run:
    """The active run, or a new one where that is finished: for the calls that begin a training."""
    return init() if active().is_finished else active()


def init(
    project: str | None = None,
    task: str | None = None,
    name: str | None = None,
    *,
    example: str = "example",
    unit: str = "examples",
    units_per_example: float = 1,
    config: Mapping[str, object] | None = None,
    tags: Sequence[str] = (),
    num_devices: int = 1,
    device: str | None = None,
    usd_per_device_hour: float | None = None,
    family: str | None = None,
    planned_steps: int | None = None,
    run_id: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    mode: Literal["online", "offline", "disabled"] | None = None,
    log_every: int | None = None,
    group_seconds: float | None = None,
    strict: bool | None = None,
    mirror: "str | Mirror | None" = None,
) -> Run:
    """A new run, from now on the active one. What is left out comes from the environment, then from defaults.

    Args:
        project: Groups runs; NOISESCALE_PROJECT.
        task: What is trained, the same for all runs that may be compared; NOISESCALE_TASK.
        name: For people; NOISESCALE_NAME.
        example: What is sampled independently, in the singular: "sequence", "image".
        unit: What noise scales are shown in: "tokens", "images".
        units_per_example: Units in one example.
        config: Anything worth keeping, for example `vars(args)`; what looks like a secret is stored as `***`.
        tags: At most 32.
        num_devices: Devices of the whole job.
        device: What they are; None: where the watched parameters are.
        usd_per_device_hour: Price, for costs.
        family: Kind of task or model, to compare across tasks.
        planned_steps: Length of the training in optimizer steps.
        run_id: UUID of a run to write to, for several processes and resumed jobs; NOISESCALE_RUN_ID. A resumed job
            also passes `step` to its first log call: what it then records takes the place of the older steps.
        url: Address of the server; NOISESCALE_URL.
        api_key: NOISESCALE_API_KEY.
        mode: "online"; "offline": records stay on disk until `noisescale sync`; "disabled": nothing is measured or
            sent; NOISESCALE_MODE.
        log_every: Updates per row sent; NOISESCALE_LOG_EVERY.
        group_seconds: Least time between two records of layers; NOISESCALE_GROUP_SECONDS.
        strict: Our own errors are raised instead of logged, for tests.
        mirror: Where the numbers are shown as well: "wandb", "mlflow", "tensorboard" (what is active there), or an
            object with `log(step, values)`.

    Raises:
        ConfigError: For a wrong argument.
    """
    settings = Config.from_env(
        project=project,
        task=task,
        name=name,
        run_id=run_id,
        url=url,
        api_key=api_key,
        mode=mode,
        log_every=log_every,
        group_seconds=group_seconds,
        strict=strict,
    )
    description = RunDescription(
        project=settings.project,
        task=settings.task,
        name=settings.name,
        example=example,
        unit=unit,
        units_per_example=units_per_example,
        config=config or {},
        tags=tags,
        num_devices=num_devices,
        device=device,
        usd_per_device_hour=usd_per_device_hour,
        family=family,
        planned_steps=planned_steps,
    )
    PREFERENCE.kernels = settings.kernels
    run = Run(settings, description, mirror=None if mirror is None else open_mirror(mirror))
    _active[:] = [run]
    return run


def watch(
    model: "torch.nn.Module",
    optimizer: "torch.optim.Optimizer | None" = None,
    *,
    loss_reduction: "LossReduction" = "mean_over_examples",
    groups: "Grouping" = "layer",
    log_every: int | None = None,
    every: int = 1,
    overhead: float | None = None,
    small_batches: "SmallBatches" = "auto",
    split: int | None = None,
    scaler: "torch.amp.GradScaler | None" = None,
    weighting: "Weighting" = "by_size",
    kinds: "Kind | Sequence[Kind]" = (),
    name: str | None = None,
) -> None:
    """`Run.watch` of the active run."""
    unfinished().watch(
        model,
        optimizer,
        loss_reduction=loss_reduction,
        groups=groups,
        log_every=log_every,
        every=every,
        overhead=overhead,
        small_batches=small_batches,
        split=split,
        scaler=scaler,
        weighting=weighting,
        kinds=kinds,
        name=name,
    )


def unwatch() -> None:
    """`Run.unwatch` of the active run."""
    active().unwatch()


def micro_batch(num_examples: "float | torch.Tensor | None" = None) -> contextlib.AbstractContextManager[None]:
    """`Run.micro_batch` of the active run."""
    return active().micro_batch(num_examples)


def ignore(name: str | None = None) -> contextlib.AbstractContextManager[None]:
    """`Run.ignore` of the active run."""
    return active().ignore(name)


def log_gradients(
    loss: "torch.Tensor | float | None" = None,
    batch_size: float | None = None,
    lr: float | None = None,
    step: int | None = None,
    name: str | None = None,
) -> None:
    """`Run.log_gradients` of the active run."""
    active().log_gradients(loss, batch_size, lr, step, name)


def log_norms(
    *,
    small_batch_size: float,
    big_batch_size: float,
    big_sq_norm: float,
    small_sq_norm: float | Sequence[float] | None = None,
    sum_small_sq_norm: float | None = None,
    num_small: int | None = None,
    step: int | None = None,
    loss: float | None = None,
    lr: float | None = None,
    layers: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """`Run.log_norms` of the active run."""
    unfinished().log_norms(
        small_batch_size=small_batch_size,
        big_batch_size=big_batch_size,
        big_sq_norm=big_sq_norm,
        small_sq_norm=small_sq_norm,
        sum_small_sq_norm=sum_small_sq_norm,
        num_small=num_small,
        step=step,
        loss=loss,
        lr=lr,
        layers=layers,
    )


def log_nested_norms(
    sum_sq_norms: Mapping[str, float],
    big_sq_norm: float,
    sizes: "NestedSizes | Sequence[Tree]",
    *,
    step: int | None = None,
    loss: float | None = None,
    lr: float | None = None,
) -> None:
    """`Run.log_nested_norms` of the active run."""
    unfinished().log_nested_norms(sum_sq_norms, big_sq_norm, sizes, step=step, loss=loss, lr=lr)


def log_hessian(
    losses: "Sequence[Callable[[], torch.Tensor]]",
    sizes: Sequence[float] | None = None,
    curvature_loss: "Callable[[], torch.Tensor] | None" = None,
    step: int | None = None,
    name: str | None = None,
) -> None:
    """`Run.log_hessian` of the active run."""
    active().log_hessian(losses, sizes, curvature_loss, step, name)


def log_metrics(step: int | None = None, **values: float) -> None:
    """`Run.log_metrics` of the active run."""
    active().log_metrics(step, **values)


def clip_grad_norm_(
    max_norm: float, parameters: "Iterable[torch.Tensor] | None" = None, name: str | None = None
) -> "torch.Tensor":
    """`Run.clip_grad_norm_` of the active run."""
    return active().clip_grad_norm_(max_norm, parameters, name)


def noise_scale(kind: str = "simple", name: str | None = None) -> NoiseScale:
    """`Run.noise_scale` of the active run."""
    return active().noise_scale(kind, name)


def recommendation(name: str | None = None, **asked: Unpack[Asked]) -> Recommendation:
    """`Run.recommendation` of the active run."""
    return active().recommendation(name, **asked)


def finish(status: Literal["finished", "failed"] = "finished") -> None:
    """`Run.finish` of the active run; the next `watch()` or `log_norms()` makes a new one."""
    if _active:
        _active[-1].finish(status)
