"""What became of a run's records, in sentences for the end of a job: only what is so."""

from collections.abc import Iterator
from pathlib import Path

from noisescale.transport.accounts import Account

REASONS = {
    "rejected": "refused by the server one by one, and kept in quarantine/",
    "spool_full": "given up because the folder of the records was full",
    "disk_full": "in memory only when the disk could not be written to",
    "memory_full": "in memory only, which was full",
    "spool_corrupt": "damaged on the disk",
    "too_large": "larger than a record may be",
    "not_encodable": "of values that cannot be encoded",
    "not_stored": "hit by an error of noisescale",
    "trimmed": "no longer held when the server went back",
}


def last_words(
    run_id: str, url: str, account: Account, *, why: str, folder: Path | None, num_in_memory: int, is_loss_unknown: bool
) -> Iterator[str]:
    """Sentences where anything is amiss; none where every record is stored.

    Args:
        run_id: Of the run.
        url: Of the server.
        account: Of its stream.
        why: Why records wait, where any do.
        folder: Where they wait; None: in memory only.
        num_in_memory: How many of those that wait are nowhere else.
        is_loss_unknown: What was given up could not be written down.
    """
    num_kept = account.num_kept - num_in_memory
    if account.num_kept:
        yield (
            f"{account.num_kept} of {account.num_logged} records of run {run_id} were not delivered to {url}: {why}"
            f"{_where(num_kept, folder)}"
        )
    if num_in_memory:
        yield f"{num_in_memory} records of run {run_id} are in memory only, and are lost when this process ends"
    for reason, num_lost in account.num_lost_by_reason.items():
        yield f"{num_lost} of {account.num_logged} records of run {run_id} are lost: {REASONS.get(reason, reason)}"
    if is_loss_unknown:
        yield f"which records of run {run_id} are lost could not even be written down: {folder} does not say so"
    if account.num_set_aside:
        yield f"{account.num_set_aside} records of run {run_id} were refused by {url}, and are kept in quarantine/"


def end_of_a_killed_job(num_records: int, num_bytes_damaged: int) -> str:
    """What is so of a stream that its writer has not ended.

    Args:
        num_records: That are known of it.
        num_bytes_damaged: At its end.
    """
    damaged = f"{num_bytes_damaged:,} bytes at its end are damaged, with records in them that are lost uncounted; "
    return (
        f"its job was killed: {damaged if num_bytes_damaged else ''}"
        f"whether it had more than the {num_records} records that are known cannot be known"
    )


def _where(num_kept: int, folder: Path | None) -> str:
    return "" if folder is None or not num_kept else f". {_they(num_kept)} kept: noisescale sync {folder}"


def _they(num_kept: int) -> str:
    return "It is" if num_kept == 1 else f"{num_kept} are"
