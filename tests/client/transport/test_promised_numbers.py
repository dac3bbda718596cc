"""The limits and times of delivery that the documentation promises are those of the code."""

import re
from pathlib import Path

import pytest

from noisescale.transport import disk_spool, heartbeat, http, stream, stream_folder, uploader, write_speed
from noisescale.transport.limits import Limits

DELIVERY = re.sub(r"\s+", " ", (Path(__file__).parents[3] / "docs/delivery.md").read_text())
LIMITS = Limits()


@pytest.mark.parametrize(
    ("promise", "found", "expected"),
    [
        ("at most 8 MiB a file", LIMITS.segment_bytes, 8 << 20),
        ("the newest 10,000", LIMITS.memory_records, 10_000),
        ("or 16 MiB", LIMITS.memory_bytes, 16 << 20),
        ("tried again each second", disk_spool.RETRY_SECONDS, 1.0),
        ("1 GiB a run", LIMITS.run_bytes, 1 << 30),
        ("looked at every 10 s", disk_spool.FREE_DISK_SECONDS, 10.0),
        ("less than 5 % of the disk free", LIMITS.free_share, 0.05),
        ("a write takes more than 50 ms", write_speed.SLOW_SECONDS, 0.050),
        ("until 100 writes took less than 5 ms each", write_speed.NUM_QUICK, 100),
        ("until 100 writes took less than 5 ms each", write_speed.QUICK_SECONDS, 0.005),
        ("larger than 512 KiB", stream.MAX_FRAME_BYTES, 512 << 10),
        ("kept for 24 h", LIMITS.acked_seconds, 24 * 3600.0),
        ("at most 256 MiB a stream", LIMITS.acked_bytes, 256 << 20),
        ("a heartbeat each 20 s", heartbeat.HEARTBEAT_SECONDS, 20.0),
        ("for at most an hour", heartbeat.LONGEST_STEP_SECONDS, 3600.0),
        ("each second in which something was written", disk_spool.SYNC_SECONDS, 1.0),
        ("waits for one attempt, 2 s at most", uploader.UNREACHED_SECONDS, 2.0),
        ("An answer is read up to 64 MiB", http.MAX_ANSWER_BYTES, 64 << 20),
        ("have numbers from 512 on", stream_folder.HIGH_DESCRIPTOR, 512),
    ],
)
def test_a_number_that_the_page_on_delivery_promises_is_the_codes(promise, found, expected):
    assert promise in DELIVERY
    assert found == expected


def test_a_batch_is_within_what_a_server_takes_and_retries_come_within_a_minute():
    """`docs/wire.md`: 2,000 records and 5 MiB sent; a server that is back is found again within a minute."""
    assert (uploader.MAX_RECORDS, uploader.MAX_BYTES) == (1_000, 1 << 20)
    assert (uploader.INTERVAL_SECONDS, uploader.FIRST_BACKOFF_SECONDS, uploader.LAST_BACKOFF_SECONDS) == (0.5, 0.5, 60)
    assert (http.CONNECT_SECONDS, http.ANSWER_SECONDS) == (10.0, 30.0)
