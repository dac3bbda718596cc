"""What `noisescale reproduce --advice` does once torch and scikit-learn are known to be there."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from noisescale.config import Config
from noisescale.version import __version__
from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE
from noisescale_lab.reproduce.advice.tables import as_text, summary, tables, write_files
from noisescale_lab.reproduce.advice.task_advice import ReplayEffort, TaskAdvice, try_advice
from noisescale_lab.reproduce.claim.campaign import settings
from noisescale_lab.reproduce.claim.report.to_server import answers, store_findings
from noisescale_lab.reproduce.command import at_least_one, named_tasks, say
from noisescale_lab.reproduce.in_processes import in_processes
from noisescale_lab.reproduce.registry import ADVICE_TARGETS

OURS_HERE = ("ours", "ours without undo", "ours without restarts")
QUICK_POLICIES = ("keep", "B = phi", "B = sqrt(r phi)", "B = r (control)", "ours", "ours without undo")
QUICK_TASKS = ("digits_softmax", "digits_ae_adam", "powerlaw_regression")
SWEEP_SEEDS, QUICK_SWEEP_SEEDS, REPLAY_SEEDS = 6, 3, 2
APART = 500
"""Replays draw with seeds so far from the sweep's."""


# All tasks with advice, in processes of their own; what is in the folder is not tried again.


@dataclass(frozen=True, slots=True)
class AdviceCampaign:
    """What is tried.

    Attributes:
        folder: One folder a task below it.
        is_quick: Three tasks, one seed and fewer policies.
        seed: The first of the seeds.
        tasks: Their names.
        num_processes: At a time.
    """

    folder: Path
    is_quick: bool
    seed: int
    tasks: tuple[str, ...]
    num_processes: int

    @property
    def effort(self) -> ReplayEffort:
        """How much is replayed on each task."""
        seeds, replays = (QUICK_SWEEP_SEEDS, 1) if self.is_quick else (SWEEP_SEEDS, REPLAY_SEEDS)
        first = self.seed + APART
        return ReplayEffort(
            policies=QUICK_POLICIES if self.is_quick else (*SIMPLE, *OURS_HERE),
            sweep_seeds=tuple(range(self.seed, self.seed + seeds)),
            replay_seeds=tuple(range(first, first + replays)),
        )


def usual_tasks(*, is_quick: bool) -> tuple[str, ...]:
    """Names of the tasks that are tried unless others are named."""
    return QUICK_TASKS if is_quick else tuple(ADVICE_TARGETS)


def run_campaign(campaign: AdviceCampaign, progress: Callable[[str], None]) -> tuple[TaskAdvice, ...]:
    """What was tried on all tasks, in the order of the registry.

    Args:
        campaign: What is tried.
        progress: Is told each task.

    Raises:
        ConfigError: If the folder holds what was tried otherwise.
    """
    campaign.folder.mkdir(parents=True, exist_ok=True)
    _stamp(campaign)
    start, found = time.perf_counter(), dict[str, TaskAdvice]()
    for one in in_processes(partial(try_task, campaign), campaign.tasks, campaign.num_processes):
        found[one.task] = one
        progress(_said(one, len(found), len(campaign.tasks), time.perf_counter() - start))
    return tuple(found[name] for name in ADVICE_TARGETS if name in found)


def try_task(campaign: AdviceCampaign, name: str) -> TaskAdvice:
    """One task, on one thread."""
    torch.set_num_threads(1)
    return try_advice(name, campaign.effort, campaign.folder / name)


def _stamp(campaign: AdviceCampaign) -> None:
    """Refuse a folder whose parts were made otherwise: they would be taken for this campaign's."""
    file = campaign.folder / "campaign.json"
    wanted: Mapping[str, object] = json.loads(json.dumps({"version": __version__, **asdict(campaign.effort)}))
    if not file.exists():
        file.write_text(json.dumps(wanted))
        return
    there = json.loads(file.read_text())
    for name, value in wanted.items():
        if there.get(name) != value:
            raise ConfigError(
                f"{file} was made with {name} {there.get(name)}, this campaign has {value}: name another folder"
            )


def _said(one: TaskAdvice, number: int, total: int, seconds: float) -> str:
    bar = "█" * round(20 * number / total)
    critical = f"B_crit {one.reference.critical_batch:,.0f} at the target {one.reference.target:g}"
    runs = sum(len(outcomes) for outcomes in one.outcomes.values())
    return f"{bar:░<20} {number:>2}/{total}  {seconds:5.0f} s  {one.task:<20} {critical}, {runs} runs replayed"


def run(
    *,
    is_quick: bool,
    folder: Path | None,
    tasks: str | None,
    seed: int,
    processes: int,
    url: str | None,
    is_offline: bool,
) -> int:
    """The exit status: 0 with results, 2 for wrong arguments.

    Args:
        is_quick: Three tasks, one seed and fewer policies.
        folder: Of the results; None: one in the working folder, named by effort and seed.
        tasks: Names with commas between them; None: all.
        seed: The first of the seeds.
        processes: Tasks at a time.
        url: Of a server; None: as configured.
        is_offline: Send nothing.
    """
    effort = "quick" if is_quick else "full"
    try:
        config = settings(Config.from_env(url=url), is_online=not is_offline)
        campaign = AdviceCampaign(
            folder=folder or Path(f"noisescale-advice-{effort}-{seed}"),
            is_quick=is_quick,
            seed=seed,
            tasks=named_tasks(tasks, ADVICE_TARGETS) if tasks else usual_tasks(is_quick=is_quick),
            num_processes=at_least_one(processes),
        )
        found = tables(run_campaign(campaign, say))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    say(as_text(found))
    say(f"\nAs CSV and JSON: {write_files(campaign.folder, found)}")
    if not is_offline and answers(config):
        say(store_findings(config, summary(found), kind="advice", effort=effort, seed=seed))
    return 0
