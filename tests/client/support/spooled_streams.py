"""Streams with a spool on disk, and what a correct server would make of them."""

import json
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from noisescale.transport.limits import Durability, Limits
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import MetricRecord, RunRecord, to_json
from stub_server import Ledger

NO_LIMIT_OF_THE_DISK = Limits(free_share=0.0)


def make_stream(folder: Path, *, limits: Limits = NO_LIMIT_OF_THE_DISK, durability: Durability = "direct") -> Stream:
    """A stream of run `run` below a folder."""
    return Stream(
        "run", DiskSpool([folder], limits=limits, durability=durability), lambda: RunRecord({"project": "demo"}, {})
    )


def spooled(folder: Path, values: Iterable[int], *, url: str = "http://any", is_ended: bool = True) -> Stream:
    """A stream that has these metrics on disk and was never delivered."""
    spool = DiskSpool([folder], {"url": url}, limits=NO_LIMIT_OF_THE_DISK, durability="direct")
    stream = Stream("run", spool, lambda: RunRecord({"project": "demo"}, {}))
    for value in values:
        stream.append(metric(value))
    if is_ended:
        stream.end(5)
    return stream


def kill_after(folder: Path, url: str, values: Iterable[int]) -> None:
    """A process that has logged these is killed: its stream has no end."""
    child = os.fork()
    if child == 0:
        spooled(folder, values, url=url, is_ended=False)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def metric(number: int) -> MetricRecord:
    """A record that says which one it is."""
    return MetricRecord(number, 0.0, {"n": float(number)})


def deliver(stream: Stream, ledger: Ledger, *, max_records: int = 1000, max_batches: int = 10_000) -> None:
    """Post batches until nothing waits; gaps are answered by going back, as the uploader does."""
    for _ in range(max_batches):
        batch = stream.next_batch(max_records=max_records, max_bytes=1 << 20)
        if batch is None:
            return
        answer = ledger.accept(str(stream.stream_id), json.loads(to_json(batch)))
        if answer.status == 200:
            stream.acknowledge(answer.body["acked_seq"])
        else:
            assert stream.rewind(answer.body["expected_seq"])


def numbers(ledger: Ledger, stream: Stream) -> list[float]:
    """What arrived, in the order of the record numbers."""
    stored = ledger.stored[str(stream.stream_id)]
    return [stored[seq][1]["value"] for seq in sorted(stored) if stored[seq][0] == "metrics"]
