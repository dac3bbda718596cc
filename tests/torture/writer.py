"""A job that trains: a record every few milliseconds, and a line to the oracle for each call that has returned."""

import argparse
import signal
import time
from pathlib import Path

import noisescale
from full_disk import FullDisk
from noisescale.transport.spool import held_write, segment
from noisescale.transport.upload import answers, uploader
from noisescale.transport.upload.uploader import Uploader
from torture import content, mutants
from torture.oracle import Oracle, watch_for_forgetting

INTERVAL_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 0.5


def hurry() -> None:
    """Send ten times as often as people's jobs, and come back sooner: most faults are to meet a batch on its way."""
    Uploader.__init__.__kwdefaults__ |= {
        "interval_seconds": INTERVAL_SECONDS,
        "first_backoff_seconds": INTERVAL_SECONDS,
    }
    uploader.LAST_BACKOFF_SECONDS = LONGEST_WAIT_SECONDS
    answers.MAX_RETRY_AFTER_SECONDS = LONGEST_WAIT_SECONDS


def fill_the_disk(number: int, frame: object) -> None:
    """From now on there is no space for records."""
    segment.os = FullDisk()  # type: ignore[assignment]


def have_the_disk_fill_for_every_way_to_write() -> None:
    """The write of the C library goes past `os`: it finds no space either, once there is none."""
    write = held_write.write
    assert write is not None

    def written(descriptor: int, frame: bytes, num_bytes: int) -> int:
        return -1 if isinstance(segment.os, FullDisk) else write(descriptor, frame, num_bytes)

    held_write.write = written


class Job:
    """One process."""

    def __init__(self, writer: int, folder: Path) -> None:
        self._writer = writer
        self._oracle = Oracle(folder, writer)
        self._is_told_to_end = False
        self._run = noisescale.init(project="torture", task="torture", name=f"writer {writer}")
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGUSR1, fill_the_disk)

    def _end(self, number: int, frame: object) -> None:
        self._is_told_to_end = True

    def work(self, num_records: int, pause_seconds: float) -> None:
        """Log so many records, or until told to end; then finish as a training does."""
        outbox = self._run._main._outbox
        assert outbox is not None
        for index in range(num_records):
            if self._is_told_to_end:
                break
            self._log(index)
            stream = outbox._stream
            self._oracle.accepted(index, str(stream.stream_id), stream.delivery().num_logged)
            time.sleep(pause_seconds)
        self._run.finish()

    def _log(self, index: int) -> None:
        number = self._writer * content.PER_WRITER + index
        if content.is_measurement(number):
            self._run.log_norms(**content.norms_of(number), step=index)  # type: ignore[arg-type]
        else:
            self._run.log_metrics(index, **content.metrics_of(number))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--writer", type=int, required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True)
    parser.add_argument("--mutant", default="")
    arguments = parser.parse_args()
    watch_for_forgetting(arguments.oracle)
    hurry()
    have_the_disk_fill_for_every_way_to_write()
    mutants.apply_to_client(arguments.mutant)
    Job(arguments.writer, arguments.oracle).work(arguments.records, arguments.pause)


if __name__ == "__main__":
    main()
