"""A stream on disk against a model: no sequence of logging, deliveries and crashes loses a record without saying so."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from noisescale.transport.limits import Limits
from noisescale.transport.upload.left_behind import open_stream, stream_folders
from noisescale.transport.wire import to_json
from spooled_streams import deliver, make_stream, metric
from stub_server import Ledger

ROOMY = Limits(segment_bytes=700, free_share=0.0)
TIGHT = Limits(segment_bytes=700, run_bytes=3500, free_share=0.0, acked_bytes=1400)


class SpooledStream(RuleBasedStateMachine):
    """One process after another writes to the same folder; a crash leaves its stream to whoever comes."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger()
        self.limits = ROOMY
        self.accepted: dict[str, dict[int, float]] = {}
        self.number = 0
        self.start()

    def start(self):
        self.stream = make_stream(self.folder, limits=self.limits)

    @rule(count=st.integers(1, 30))
    def log(self, count):
        for _ in range(count):
            self.number += 1
            self.stream.append(metric(self.number))
            seq = self.stream.delivery().num_logged
            self.accepted.setdefault(self.stream.stream_id, {})[seq] = float(self.number)

    @rule(max_records=st.integers(1, 40), is_reply_lost=st.booleans(), is_stored=st.booleans())
    def post(self, max_records, is_reply_lost, is_stored):
        batch = self.stream.next_batch(max_records=max_records, max_bytes=1 << 20)
        if batch is None or (is_reply_lost and not is_stored):
            return
        answer = self.ledger.accept(self.stream.stream_id, json.loads(to_json(batch)))
        if is_reply_lost:
            return
        if answer.status == 200:
            self.stream.acknowledge(answer.body["acked_seq"])
        else:
            assert self.stream.rewind(answer.body["expected_seq"])

    @rule()
    def sync(self):
        if self.stream._spool.folder is not None:
            self.stream._spool.sync()

    @rule()
    def become_tight(self):
        self.limits = TIGHT

    @rule(is_torn=st.booleans())
    def crash(self, is_torn):
        """The process is gone; a write that it was in may be torn."""
        let_go(self.stream._spool)
        newest = sorted(self.folder.glob(f"run/{self.stream.stream_id}/*.seg"))
        if newest and is_torn:
            with newest[-1].open("ab") as file:
                file.write(b"\xf5\xb1MS\x01\x03torn")
        self.start()

    @rule(is_told=st.booleans())
    def send_what_was_left(self, is_told):
        for folder in stream_folders(self.folder):
            cursor = self.ledger.acked.get(folder.path.name, 0)
            left, _ = open_stream(folder, cursor if is_told else None)
            deliver(left, self.ledger)

    @invariant()
    def the_ledger_is_true(self):
        self.ledger.check()
        for stream_id, stored in self.ledger.stored.items():
            for seq, (kind, row) in stored.items():
                assert kind == "run" or self.accepted[stream_id][seq] == row["value"], "no wrong record"

    def teardown(self):
        deliver(self.stream, self.ledger)
        self.stream.end(5)
        self.send_what_was_left(is_told=True)
        for stream_id, numbers in self.accepted.items():
            lost = self.ledger.lost[stream_id]
            for seq in numbers:
                assert (seq in self.ledger.stored[stream_id]) != (seq in lost), "stored or declared lost, never both"
            assert set(lost.values()) <= {"spool_full", "spool_corrupt"}, "corrupt: the reason was not on disk yet"
            assert not lost or self.limits is TIGHT
        shutil.rmtree(self.folder)


def let_go(spool):
    """Descriptors and lock, without a seal, as death does."""
    spool._is_ending = True
    spool._wake.set()
    if spool._thread is not None:
        spool._thread.join()
    spool._segments.close()
    if spool.folder is not None:
        spool.folder.release()


def check(num_examples):
    run_state_machine_as_test(
        SpooledStream,
        settings=settings(
            max_examples=num_examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_life_of_a_stream_keeps_every_records_account():
    check(15)


@pytest.mark.slow
def test_many_lives_of_a_stream_keep_every_records_account():
    check(1000)
