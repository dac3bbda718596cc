"""All tasks, in processes of their own, each kept in a file when it is done: what is there is not run again."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from noisescale.config import Config
from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.claim.effort import EFFORTS
from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck, check_quadratics
from noisescale_lab.reproduce.claim.measure_task import measure_task
from noisescale_lab.reproduce.claim.report.to_server import PROJECT, store_sweep
from noisescale_lab.reproduce.claim.task_result import TaskResult, read, write
from noisescale_lab.reproduce.in_processes import in_processes

QUADRATICS = "quadratics"
LONGEST_FIRST = (
    "charlm_transformer",
    "cartpole_pg",
    "charlm_mlp",
    "charlm_mlp_adam",
    "digits_labelnoise9",
    "digits_mlp_256",
    "digits_vae_adam",
    "patches_ae_adam",
    "teacher_student",
    "digits_labelnoise",
)
"""These begin first, so that no process is left alone with one of them."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is run.

    Attributes:
        folder: One file a task.
        effort: "quick" or "full".
        seed: The first of the seeds.
        tasks: Their names.
        num_processes: At a time.
        config: Where watched runs and sweeps are sent; mode "disabled": nowhere.
    """

    folder: Path
    effort: str
    seed: int
    tasks: tuple[str, ...]
    num_processes: int
    config: Config


def run_campaign(
    campaign: Campaign, progress: Callable[[str], None]
) -> tuple[tuple[TaskResult, ...], tuple[QuadraticCheck, ...]]:
    """The results of all tasks, in the order of their names, and the quadratics, which are not kept.

    Args:
        campaign: What is run.
        progress: Is told each task.

    Raises:
        ConfigError: If the folder holds results of another effort or seed.
    """
    campaign.folder.mkdir(parents=True, exist_ok=True)
    results = {result.task: result for result in _kept(campaign)}
    waiting = [task for task in campaign.tasks if task not in results]
    if results:
        progress(f"{len(results)} of {len(campaign.tasks)} tasks were there already, in {campaign.folder}")
    waiting.sort(key=lambda task: LONGEST_FIRST.index(task) if task in LONGEST_FIRST else len(LONGEST_FIRST))
    start = time.perf_counter()
    quadratics: tuple[QuadraticCheck, ...] = ()
    work = [*waiting, QUADRATICS]  # last: short, beside the last of the tasks
    for found in in_processes(partial(_run_one, campaign), work, min(campaign.num_processes, len(work))):
        if isinstance(found, TaskResult):
            results[found.task] = found
            progress(_said(found, len(results), len(campaign.tasks), time.perf_counter() - start))
        else:
            quadratics = found
    return tuple(results[task] for task in sorted(results)), quadratics


def _run_one(campaign: Campaign, name: str) -> TaskResult | tuple[QuadraticCheck, ...]:
    logging.getLogger("noisescale").addHandler(logging.NullHandler())
    torch.set_num_threads(1)
    return check_quadratics() if name == QUADRATICS else run_task(campaign, name)


def run_task(campaign: Campaign, name: str) -> TaskResult:
    """One task, kept in its file."""
    label = f"{name}, {campaign.effort}, seed {campaign.seed}"
    result = measure_task(
        name,
        EFFORTS[campaign.effort],
        seed=campaign.seed,
        config=campaign.config,
        progress=logging.getLogger(__name__).info,
        store=partial(store_sweep, campaign.config, label=label) if campaign.config.mode == "online" else _nowhere,
    )
    write(result, _path(campaign, name))
    return result


def _nowhere(*_: object) -> None:
    return None


def _kept(campaign: Campaign) -> Iterator[TaskResult]:
    for name in campaign.tasks:
        path = _path(campaign, name)
        if path.exists():
            result = read(path)
            if (result.effort, result.seed) != (campaign.effort, campaign.seed):
                raise ConfigError(
                    f"{path} is of a {result.effort} run with seed {result.seed}, this one is {campaign.effort} with "
                    f"seed {campaign.seed}: name another folder"
                )
            yield result


def _path(campaign: Campaign, task: str) -> Path:
    return campaign.folder / f"{task}.json"


def _said(result: TaskResult, number: int, total: int, seconds: float) -> str:
    hardest = result.targets[-1]
    bar = "█" * round(20 * number / total)
    head = f"{bar:░<20} {number:>2}/{total}  {seconds:5.0f} s  {result.task:<20}"
    if hardest.fit is None or hardest.near_critical is None:
        return f"{head} {hardest.exclusion}"
    factor = result.units_per_example
    low, high = (("open" if end is None else f"{end * factor:,.0f}") for end in (hardest.fit.low, hardest.fit.high))
    critical = f"B_crit {hardest.fit.critical_batch * factor:,.0f} [{low}, {high}]"
    return f"{head} {critical}, noise scale {hardest.near_critical * factor:,.0f} {result.unit}"


def settings(config: Config, *, is_online: bool) -> Config:
    """The settings of watched runs."""
    return Config.from_env(
        url=config.url, api_key=config.api_key, project=PROJECT, mode="online" if is_online else "disabled"
    )
