"""What `noisescale reproduce` does once torch and scikit-learn are known to be there."""

import sys
from pathlib import Path

from noisescale.config import Config
from noisescale.errors import ConfigError
from noisescale.reproduce.claim.campaign import Campaign, run_campaign, settings, usual_tasks
from noisescale.reproduce.claim.files import write_files
from noisescale.reproduce.claim.retrospect import series
from noisescale.reproduce.claim.tables import tables
from noisescale.reproduce.claim.to_server import answers
from noisescale.reproduce.registry import ALL


def run(
    *,
    effort: str,
    folder: Path | None,
    tasks: str | None,
    seed: int,
    processes: int,
    url: str | None,
    is_offline: bool,
) -> int:
    """The exit status: 0 with results, 2 for wrong arguments.

    Args:
        effort: "quick" or "full".
        folder: Of the results; None: one in the working folder, named by effort and seed.
        tasks: Names with commas between them; None: all.
        seed: The first of the seeds.
        processes: Tasks at a time.
        url: Of a server; None: as configured.
        is_offline: Send nothing.
    """
    try:
        config = Config.from_env(url=url)
        is_online = not is_offline and answers(config)
        campaign = Campaign(
            folder=folder or Path(f"noisescale-reproduce-{effort}-{seed}"),
            effort=effort,
            seed=seed,
            tasks=_named(tasks),
            num_processes=_at_least_one(processes),
            config=settings(config, is_online=is_online),
        )
        _say(f"Runs and sweeps go to {config.url}, project reproduce." if is_online else "Nothing is sent.")
        results = run_campaign(campaign, _say)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = series(results)
    _say(tables(results, found))
    _say(f"\nAs CSV and JSON: {write_files(campaign.folder, results, found)}")
    return 0


def _named(tasks: str | None) -> tuple[str, ...]:
    if tasks is None:
        return usual_tasks()
    names = tuple(name.strip() for name in tasks.split(","))
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise ConfigError(f"tasks has no {unknown[0]!r}: known are {', '.join(sorted(ALL))}")
    return names


def _at_least_one(processes: int) -> int:
    if processes < 1:
        raise ConfigError(f"processes must be at least 1, got {processes}: leave it out for one a core")
    return processes


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
