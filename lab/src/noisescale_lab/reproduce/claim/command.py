"""What `noisescale reproduce` does once torch and scikit-learn are known to be there."""

import sys
from pathlib import Path

from noisescale.config import Config
from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.claim.campaign import Campaign, run_campaign, settings
from noisescale_lab.reproduce.claim.effort import usual_tasks
from noisescale_lab.reproduce.claim.judged.findings import findings
from noisescale_lab.reproduce.claim.report.files import HOW, summary, write_files, write_report
from noisescale_lab.reproduce.claim.report.tables import tables
from noisescale_lab.reproduce.claim.report.to_server import answers, store_findings
from noisescale_lab.reproduce.command import at_least_one, named_tasks, say
from noisescale_lab.reproduce.registry import ALL


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
            tasks=named_tasks(tasks, ALL) if tasks else usual_tasks(effort),
            num_processes=at_least_one(processes),
            config=settings(config, is_online=is_online),
        )
        say(f"Runs and sweeps go to {config.url}, project reproduce." if is_online else "Nothing is sent.")
        results, quadratics = run_campaign(campaign, say)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = findings(results, quadratics)
    text = tables(found)
    say(text)
    say(f"\nAs CSV and JSON: {write_files(campaign.folder, found)}")
    say(f"With figures: {write_report(campaign.folder, found, text) or HOW}")
    if is_online:
        say(store_findings(campaign.config, summary(found), kind="claim", effort=effort, seed=seed))
    return 0
