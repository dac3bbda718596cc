"""The same address with another database behind it: what was meant for the first one does not go there unasked."""

import pytest

from noisescale import commands, outbox
from noisescale.transport.upload import late_delivery
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import KEPT_SECONDS, adopt
from noisescale.transport.upload.left_behind import stream_folders
from spooled_streams import make_stream, metric, spooled
from stub_server import Ledger, http_stub

NOT_YET = (503, {}, b'{"type": "/errors/too-busy"}')


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NOISESCALE_URL", raising=False)
    monkeypatch.setattr(late_delivery, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("noisescale.commands.sync.PATIENCE_SECONDS", 0.3)
    with http_stub() as running:
        running.ledger.database_id = "first database"
        yield running


@pytest.fixture
def root(tmp_path):
    return tmp_path / "own" / "spool"


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url, None, "noisescale/test")
    yield opened
    opened.close()


def with_a_part_in_the_first_database(root, stub):
    """A stream of which some records have arrived."""
    spooled(root, range(5), url=stub.url)
    assert commands.main(["sync", "--url", stub.url]) == 0
    [folder] = stream_folders(root)
    assert folder.database_id() == "first database"
    (folder.path / ".settled").unlink(missing_ok=True)
    folder.acknowledge(3, "first")
    return folder


def another_database(stub, database_id="second database"):
    stub.ledger = Ledger()
    stub.ledger.database_id, stub.ledger.epoch = database_id, "epoch of another"
    return stub.ledger


def test_sync_leaves_out_what_another_database_has_taken_and_says_how_to_send_it_all_the_same(stub, root, capsys):
    folder = with_a_part_in_the_first_database(root, stub)
    second = another_database(stub)
    capsys.readouterr()

    assert commands.main(["sync", "--url", stub.url]) == 1

    said = capsys.readouterr().out
    assert second.stored == {}
    assert (
        f"1 stream left out: another database is behind {stub.url} now than the one that has their first records"
        in said
    )
    assert f"noisescale sync FOLDER, such as {folder.path}" in said
    assert commands.main(["sync", str(folder.path), "--url", stub.url]) == 0, "whoever names the folder means it"
    assert len(second.stored[folder.path.name]) == 6
    assert folder.database_id() == "second database"


def test_a_job_does_not_adopt_it_and_says_so_once(stub, root, server, caplog):
    folder = with_a_part_in_the_first_database(root, stub)
    second = another_database(stub)

    [outcome] = adopt(root, server, "epoch of another")

    assert second.stored == {}
    assert (outcome.num_records, outcome.num_left) == (3, 3)
    assert (outcome.num_there, outcome.num_delivered, outcome.num_lost) == (0, 0, 0)
    assert not outbox._is_left(outcome), "nothing is gained by trying again"
    assert f"another database is behind {stub.url} now" in caplog.text
    assert f"noisescale sync {folder.path}" in caplog.text
    assert "another database" in folder.left_because()


def test_what_has_arrived_in_the_first_database_is_not_sent_to_the_second_and_goes_in_time(
    stub, root, server, monkeypatch
):
    spooled(root, range(5), url=stub.url)
    assert commands.main(["sync", "--url", stub.url]) == 0
    second = another_database(stub)

    assert list(adopt(root, server, "epoch of another")) == []
    assert second.stored == {}
    [folder] = stream_folders(root)
    now = folder.newest_change() + KEPT_SECONDS
    monkeypatch.setattr(late_delivery.time, "time", lambda: now + 1)
    assert list(adopt(root, server, "epoch of another")) == []

    assert list(stream_folders(root)) == []
    assert second.stored == {}


def test_a_restored_backup_is_the_same_database_and_gets_what_it_lacks(stub, root, server):
    folder = with_a_part_in_the_first_database(root, stub)
    stub.ledger = stub.ledger.restored({folder.path.name: 2})

    assert [outcome.num_left for outcome in adopt(root, server, stub.ledger.epoch)] == [0]

    assert len(stub.ledger.stored[folder.path.name]) == 6


@pytest.mark.parametrize("database_id", [None, "first database"])
def test_a_server_that_does_not_say_which_database_it_has_gets_the_records_as_before(stub, root, server, database_id):
    folder = with_a_part_in_the_first_database(root, stub)
    another_database(stub, database_id)

    assert [outcome.num_left for outcome in adopt(root, server, "epoch of another")] == [0]
    assert len(stub.ledger.stored[folder.path.name]) == 6


def test_records_that_no_database_has_taken_go_to_the_server_that_they_name(stub, root):
    spooled(root, range(5), url=stub.url)

    assert commands.main(["sync", "--url", stub.url]) == 0

    assert [len(stored) for stored in stub.ledger.stored.values()] == [6]


def test_where_a_proxy_answers_the_question_nothing_is_sent(stub, root, server, capsys):
    with_a_part_in_the_first_database(root, stub)
    second = another_database(stub)
    stub.answers.append((502, {}, b"<html>"))

    assert commands.main(["sync", "--url", stub.url]) == 1
    stub.answers.append(NOT_YET)
    [outcome] = adopt(root, server, "epoch of another")

    assert second.stored == {}
    assert "1 stream left out" in capsys.readouterr().out
    assert outcome.num_left > 0
    assert outbox._is_left(outcome), "it is asked again"


def test_a_folder_that_names_no_server_is_sent_nowhere_unasked(stub, root, capsys):
    spooled(root, range(5), url=stub.url)
    [folder] = stream_folders(root)
    (folder.path / "meta.json").unlink()

    assert commands.main(["sync", "--url", stub.url]) == 1

    said = capsys.readouterr().out
    assert stub.ledger.stored == {}
    assert "1 stream left out: nothing says which server was meant" in said
    assert commands.main(["sync", str(folder.path), "--url", stub.url]) == 0
    assert [len(stored) for stored in stub.ledger.stored.values()] == [6]


def test_a_folder_that_is_made_again_still_names_the_database(root):
    stream = make_stream(root)
    stream.append(metric(1))
    stream.note_database("first database")

    stream.start_anew()

    folders = list(stream_folders(root))
    stream.end(1.0)
    assert len(folders) == 2
    assert {folder.database_id() for folder in folders} == {"first database"}
