"""The functions of the package: each is a method of `Run`, of the active run, which is made on first use."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.guard import announce
from noisescale.kernels.preference import PREFERENCE
from noisescale.mirrors.trackers import Mirror, open_mirror
from noisescale.options import Delivery, Machine, Units, inside, renewed, takes_older
from noisescale.run.run import FINISH_SECONDS, Run

if TYPE_CHECKING:
    import torch

P = ParamSpec("P")
R = TypeVar("R")

_active: list[Run] = []


def active() -> Run:
    """The run that was made last; one with settings from the environment where there is none."""
    return _active[-1] if _active else init()


def current() -> Run | None:
    """The run that was made last, unless it is finished; none is made."""
    return _active[-1] if _active and not _active[-1].is_finished else None


def unfinished() -> Run:
    """The active run, or a new one where that is finished: for the calls that begin a training."""
    return current() or init()


@takes_older(
    {
        **inside("units", Units, "example", "unit", units_per_example="per_example"),
        **inside("machine", Machine, "num_devices", "device", "usd_per_device_hour"),
        **inside("delivery", Delivery, "url", "api_key", "log_every", "group_seconds", "strict"),
    }
)
def init(
    project: str | None = None,
    task: str | None = None,
    name: str | None = None,
    *,
    units: Units | None = None,
    machine: Machine | None = None,
    family: str | None = None,
    planned_steps: int | None = None,
    config: Mapping[str, object] | None = None,
    tags: Sequence[str] = (),
    run_id: str | None = None,
    mode: Literal["online", "offline", "disabled"] | None = None,
    delivery: Delivery | None = None,
    mirror: "str | Mirror | None" = None,
) -> Run:
    """A new run, from now on the active one. What is left out comes from the environment, then from defaults.

    In an interactive session, such as a notebook, it finishes the run before.

    Args:
        project: Groups runs; NOISESCALE_PROJECT.
        task: What is trained, the same for all runs that may be compared; NOISESCALE_TASK.
        name: For people; NOISESCALE_NAME.
        units: What a batch is counted in: `Units("sequence", "tokens", 1024)`; None: examples.
        machine: What the job runs on, and its price; None: one device, where the watched parameters are.
        family: Kind of task or model, to compare across tasks.
        planned_steps: Length of the training in optimizer steps.
        config: Anything worth keeping, for example `vars(args)`; what looks like a secret is stored as `[masked]`.
        tags: At most 32.
        run_id: UUID of a run to write to, for several processes and resumed jobs; NOISESCALE_RUN_ID. A resumed job
            also passes `step` to its first log call: what it then records takes the place of the older steps.
        mode: "online"; "offline": records stay on disk until `noisescale sync`; "disabled": nothing is measured or
            sent; NOISESCALE_MODE.
        delivery: Where records go, as whom, and how often; None: as the environment says.
        mirror: Where the numbers are shown as well: "wandb", "mlflow", "tensorboard" (what is active there), or an
            object with `log(step, values)`.

    Raises:
        ConfigError: For a wrong argument.
    """
    counted, runs_on = units or Units(), machine or Machine()
    settings = Config.from_env(
        project=project, task=task, name=name, run_id=run_id, mode=mode, **asdict(delivery or Delivery())
    )
    description = RunDescription(
        project=settings.project,
        task=settings.task,
        name=settings.name,
        example=counted.example,
        unit=counted.unit,
        units_per_example=counted.per_example,
        config=config or {},
        tags=tags,
        num_devices=1 if runs_on.num_devices is None else runs_on.num_devices,
        device=runs_on.device,
        usd_per_device_hour=runs_on.usd_per_device_hour,
        family=family,
        planned_steps=planned_steps,
    )
    shown_in = None if mirror is None else open_mirror(mirror)
    if hasattr(sys, "ps1") and (before := current()) is not None:
        before.finish()  # in an interactive session a cell has run again
    PREFERENCE.kernels = settings.kernels
    run = Run(settings, description, mirror=shown_in)
    _active[:] = [run]
    if run.url is not None and not settings.rank:
        announce(f"run {description.name or run.id[:8]}: {run.url}")
    return run


def _of_this_training(run: Run, model: "torch.nn.Module") -> Run:
    """The run itself, or its successor where it has trained another model: a cell of a notebook that runs again."""
    if not run.is_over_for(model):
        return run
    successor = run.successor()
    announce(f"run {run.id} is finished: another model begins run {successor.id}")
    _active[:] = [successor]
    return successor


def _of(method: Callable[Concatenate[Run, P], R], *, begins_a_training: bool = False) -> Callable[P, R]:
    """The method as a function of the active run: the same arguments, annotations and docstring.

    Args:
        method: Of `Run`.
        begins_a_training: A finished run makes way for a new one.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        run = _active[-1] if _active else None
        kwargs = renewed(method, kwargs)  # type: ignore[assignment]  # the same keywords
        if run is None or (begins_a_training and run.is_finished):
            signature.bind(run, *args, **kwargs)  # a call that fits nothing makes no run
            run = init()
        elif begins_a_training and (model := signature.bind(run, *args, **kwargs).arguments.get("model")) is not None:
            run = _of_this_training(run, model)
        return method(run, *args, **kwargs)

    call.__signature__ = signature.replace(parameters=tuple(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return call


watch = _of(Run.watch, begins_a_training=True)
unwatch = _of(Run.unwatch)
micro_batch = _of(Run.micro_batch)
ignore = _of(Run.ignore)
log_gradients = _of(Run.log_gradients)
log_norms = _of(Run.log_norms, begins_a_training=True)
log_nested_norms = _of(Run.log_nested_norms, begins_a_training=True)
log_hessian = _of(Run.log_hessian)
log_metrics = _of(Run.log_metrics)
clip_grad_norm_ = _of(Run.clip_grad_norm_)
noise_scale = _of(Run.noise_scale)
recommendation = _of(Run.recommendation)
learning_rate = _of(Run.learning_rate)


def finish(status: Literal["finished", "failed"] = "finished", timeout_seconds: float = FINISH_SECONDS) -> None:
    """`Run.finish` of the active run, which is not made for it; the next `watch()` or `log_norms()` makes a new one."""
    if _active:
        _active[-1].finish(status, timeout_seconds)
