"""What `noisescale reproduce --advice` does once torch and scikit-learn are known to be there."""

import sys
from pathlib import Path

from noisescale.config import Config
from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.advice.campaign import AdviceCampaign, run_campaign, usual_tasks
from noisescale_lab.reproduce.advice.tables import as_text, summary, tables, write_files
from noisescale_lab.reproduce.arguments import at_least_one, named_tasks, say
from noisescale_lab.reproduce.claim.campaign import settings
from noisescale_lab.reproduce.claim.report.to_server import answers
from noisescale_lab.reproduce.findings_to_server import store_findings
from noisescale_lab.reproduce.registry import ADVICE_TARGETS


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
