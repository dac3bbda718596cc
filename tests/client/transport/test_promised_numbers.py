"""The limits and times of delivery that the documentation promises are those of the code."""

import re
from pathlib import Path

import pytest

from noisescale import outbox
from noisescale.commands import sync
from noisescale.transport.limits import Limits
from noisescale.transport.spool import disk_spool, segments, spool, stream_folder, write_speed
from noisescale.transport.upload import answers, http, late_delivery, pace, stream, uploader

DOCS = Path(__file__).parents[3] / "docs"
DELIVERY, WIRE = (re.sub(r"\s+", " ", (DOCS / name).read_text()) for name in ("delivery.md", "wire.md"))
LIMITS = Limits()
DAY = 86_400.0


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
        ("a heartbeat each 20 s", pace.HEARTBEAT_SECONDS, 20.0),
        ("for at most an hour", pace.LONGEST_STEP_SECONDS, 3600.0),
        ("each second in which something was written", disk_spool.SYNC_SECONDS, 1.0),
        ("waits for one attempt, 2 s at most", uploader.UNREACHED_SECONDS, 2.0),
        ("An answer is read up to 64 MiB", http.MAX_ANSWER_BYTES, 64 << 20),
        ("16 MiB of memory are full", spool.MAX_BYTES, 16 << 20),
        ("have numbers from 512 on", stream_folder.HIGH_DESCRIPTOR, 512),
        ("A foreign `Retry-After` counts for a minute at most", answers.MAX_FOREIGN_SECONDS, 60.0),
        ("was refused is tried again after a minute", pace.LARGER_AGAIN_SECONDS, 60.0),
        ("are tried again each minute", answers.REFUSED_RETRY_SECONDS, 60.0),
        ("after 1, 5 and 15 minutes and then each hour", outbox.ADOPTION_PAUSES, (60.0, 300.0, 900.0, 3600.0)),
        ("of which nothing arrives for a minute, or that takes an hour", late_delivery.PATIENCE_SECONDS, 60.0),
        ("of which nothing arrives for a minute, or that takes an hour", late_delivery.STREAM_SECONDS, 3600.0),
        ("`sync` waits for five minutes", sync.PATIENCE_SECONDS, 300.0),
        ("has arrived: after a day", late_delivery.KEPT_SECONDS, DAY),
        ("the oldest first beyond 256 MiB", late_delivery.KEPT_BYTES, 256 << 20),
        ("or 1,000 streams", late_delivery.KEPT_STREAMS, 1000),
        ("go a week after the first time", late_delivery.REFUSED_SECONDS, 7 * DAY),
    ],
)
def test_a_number_that_the_page_on_delivery_promises_is_the_codes(promise, found, expected):
    assert promise in DELIVERY
    assert found == expected


def test_a_server_that_tells_a_job_to_wait_is_believed_for_an_hour():
    assert "waits, an hour at most" in WIRE
    assert answers.MAX_RETRY_AFTER_SECONDS == 3600.0


def test_a_room_for_what_a_full_disk_takes_holds_hundreds_of_losses():
    assert stream_folder.GIVEN_UP_BYTES == 16 << 10


def test_what_earlier_processes_left_is_sent_at_once_and_looked_at_ten_times_a_second():
    """A person waits in front of `noisescale sync`."""
    assert (late_delivery.INTERVAL_SECONDS, late_delivery.WATCH_SECONDS, late_delivery.END_SECONDS) == (0.01, 0.1, 0.1)


def test_files_of_records_are_read_a_mebibyte_at_a_time():
    assert segments.CHUNK_BYTES == 1 << 20


def test_a_job_without_a_disk_holds_a_hundred_thousand_records():
    assert spool.MAX_RECORDS == 100_000


def test_nobody_is_told_of_the_same_trouble_more_than_once_a_minute():
    assert (disk_spool.COMPLAINT_SECONDS, uploader.COMPLAINT_SECONDS) == (60.0, 60.0)


def test_a_batch_is_within_what_a_server_takes_and_retries_come_within_a_minute():
    """`docs/wire.md`: 2,000 records and 5 MiB sent; a server that is back is found again within a minute."""
    assert (uploader.MAX_RECORDS, uploader.MAX_BYTES) == (1_000, 1 << 20)
    assert (uploader.INTERVAL_SECONDS, uploader.FIRST_BACKOFF_SECONDS, uploader.LAST_BACKOFF_SECONDS) == (0.5, 0.5, 60)
    assert (http.CONNECT_SECONDS, http.ANSWER_SECONDS) == (10.0, 30.0)
