"""What goes wrong is said at once, also on a machine that has just started, and then once a minute."""

import time

import pytest

from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import RunRecord
from stub_server import FakeServer


@pytest.fixture(params=["uploader", "spool"])
def complain(request, tmp_path):
    if request.param == "spool":
        return DiskSpool([tmp_path])._complain
    stream = Stream("run", MemorySpool(), lambda: RunRecord({}, {}))
    return Uploader(stream, FakeServer(), lambda fault: None)._complain


@pytest.mark.parametrize("started_at", [0.0, 5.0, 1e6])
def test_the_first_is_said_at_once_and_the_next_after_a_minute(complain, caplog, monkeypatch, started_at):
    said = []
    for seconds, message in [(0, "first"), (59, "too soon"), (60, "second"), (119, "too soon"), (120, "third")]:
        monkeypatch.setattr(time, "monotonic", lambda now=started_at + seconds: now)
        caplog.clear()
        complain(message)
        said += [record.message for record in caplog.records]

    assert said == ["first", "second", "third"]
