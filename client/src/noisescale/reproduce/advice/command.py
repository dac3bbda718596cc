"""What `noisescale reproduce --advice` does once torch and scikit-learn are known to be there."""

import sys
from pathlib import Path

from noisescale.errors import ConfigError
from noisescale.reproduce.advice.campaign import AdviceCampaign, run_campaign, usual_tasks
from noisescale.reproduce.advice.tables import as_text, tables, write_files
from noisescale.reproduce.arguments import at_least_one, named_tasks, say
from noisescale.reproduce.registry import ADVICE_TARGETS


def run(*, is_quick: bool, folder: Path | None, tasks: str | None, seed: int, processes: int) -> int:
    """The exit status: 0 with results, 2 for wrong arguments.

    Args:
        is_quick: Three tasks, one seed and fewer policies.
        folder: Of the results; None: one in the working folder, named by effort and seed.
        tasks: Names with commas between them; None: all.
        seed: The first of the seeds.
        processes: Tasks at a time.
    """
    try:
        campaign = AdviceCampaign(
            folder=folder or Path(f"noisescale-advice-{'quick' if is_quick else 'full'}-{seed}"),
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
    return 0
