"""`noisescale report`: the same numbers from a server and from records, and a sentence where there are none."""

import hashlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx
import pytest

import noisescale
from app_in_process import AS_LOCAL_USER
from noisescale.commands import main, records_as_server
from noisescale.commands import report as command
from noisescale.transport.upload.left_behind import stream_folders

pytestmark = pytest.mark.processes

STEPS = 400
NOISE_SCALE, BATCH = 900.0, 64
UNKNOWN = "00000000-0000-4000-8000-000000000000"
NAMES: dict[str, str] = {}
"""Names of the runs on disk by their ids."""


def log_steps(run: noisescale.Run, seed: int = 7) -> None:
    """Steps by a clock of their own, whose noise scale is known."""
    generator, now = random.Random(seed), 1.79e9
    run._main.now = run._main._log._now = lambda: now
    for _ in range(STEPS):
        now += 0.25
        noise, signal = NOISE_SCALE * generator.gauss(1, 0.05), generator.gauss(1, 0.3)
        run.log_norms(
            small_batch_size=8,
            big_batch_size=BATCH,
            small_sq_norm=signal + noise / 8,
            big_sq_norm=signal + noise / BATCH,
            lr=0.1,
            loss=2.0,
        )


def make_run(name: str) -> noisescale.Run:
    run = noisescale.init(
        project="reports",
        task="norms",
        name=name,
        units=noisescale.Units(example="image", unit="images"),
        planned_steps=1000,
    )
    log_steps(run)
    run.finish()
    return run


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs that were never sent: a whole one, one with a damaged record, one whose first record is gone."""
    folder = tmp_path_factory.mktemp("offline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_MODE", "offline")
        patch.setenv("NOISESCALE_DIR", str(folder))
        ids = [make_run(name).id for name in ("whole", "damaged", "headless")]
    NAMES.update(zip(ids, ("whole", "damaged", "headless"), strict=True))
    (damaged,), (headless,) = ((folder / "spool" / run_id).glob("*/*.seg") for run_id in ids[1:])
    flip(damaged, at=damaged.stat().st_size // 2)
    flip(headless, at=60)
    return folder


def records_of(spool: Path, name: str) -> Path:
    """The folder of a run by its name."""
    return next(path for path in (spool / "spool").iterdir() if NAMES[path.name] == name)


def flip(file: Path, *, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(bytes(data))


def content(folder: Path) -> dict[str, str]:
    """Every file below a folder with the digest of what is in it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def words(document: str) -> str:
    body = document.split("<body>")[1]
    return unescape(re.sub(r"[\s\u2060]+", " ", re.sub(r"<[^>]+>", " ", body)))


@pytest.fixture(scope="module")
def replayed(spool: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, str], str, dict[str, str]]:
    """From one call for all runs: exit status, reports, what was said on the way, and the spool's files before."""
    output = tmp_path_factory.mktemp("reports")
    before, told = content(spool), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_tell", told.append)
        status = main(["report", str(spool), "-o", str(output), "--preference", "0.7"])
    by_start = {run_id[:8]: name for run_id, name in NAMES.items()}
    reports = {by_start[path.stem.removeprefix("report-")]: path.read_text() for path in output.glob("*.html")}
    return status, reports, "\n".join(told), before


@pytest.mark.slow
def test_a_report_of_a_folder_says_what_the_server_says_of_the_same_run(
    live_server: str, spool: Path, replayed, tmp_path: Path
) -> None:
    copy = tmp_path / "spool" / records_of(spool, "whole").name
    shutil.copytree(records_of(spool, "whole"), copy)
    run_id = copy.name
    assert main(["sync", str(copy), "--url", live_server]) == 0

    status = main(["report", run_id, "--url", live_server, "-o", str(tmp_path / "r.html"), "--preference", "0.7"])

    on_server, in_folder = words((tmp_path / "r.html").read_text()), words(replayed[1]["whole"])
    answer = httpx.get(
        f"{live_server}/api/v1/runs/{run_id}/recommendation", headers=AS_LOCAL_USER, params={"preference": 0.7}
    ).json()
    assert status == 0
    assert answer["headline"] in on_server
    assert f"{live_server}/runs/{run_id}/report?pref=0.7" in on_server
    assert f"read from {spool}, without a server" in in_folder
    assert told_of(on_server) == told_of(in_folder)
    assert f"{STEPS + 2} records stored, none lost" in in_folder


def told_of(report: str) -> str:
    """All but when and from where."""
    without_time = re.sub(r"\d+ \w{3} \d{4}, \d\d:\d\d UTC", "", report)
    return re.sub(r"(http://\S+|read from \S+ without a server)", "", without_time)


def test_the_records_stay_as_they_are(spool: Path, replayed) -> None:
    assert content(spool) == replayed[3]
    assert all(folder.acked_seq() == 0 and folder.is_free() for folder in stream_folders(spool))


def test_damage_is_told_with_what_could_be_read(replayed) -> None:
    _, reports, told, _ = replayed

    assert re.search(r"stream \w+: 402 records, 1 of them lost or damaged", told)
    assert "1 of 402 records did not arrive; 401 are stored." in words(reports["damaged"])
    assert "spool corrupt" in words(reports["damaged"])


def test_a_run_that_cannot_be_read_at_all_is_named_and_the_others_are_reported(replayed) -> None:
    status, reports, told, _ = replayed

    assert status == 1
    assert sorted(reports) == ["damaged", "whole"]
    assert "the run's own record was damaged on the disk" in told


def test_the_address_of_a_page_says_run_server_and_what_is_asked(
    live_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("by its address")
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")

    status = main(
        ["report", f"{live_server}/runs/{run.id}?x=time&pref=0.3&max_steps=50", "-o", str(tmp_path / "r.html")]
    )

    assert status == 0
    assert "preference 30 % towards fewer steps · steps ≤ 50" in words((tmp_path / "r.html").read_text())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nowhere"], 2, "'nowhere' is no folder, and no run"),
        ([UNKNOWN], 1, "no run has the id 00000000"),
        (["RUN", "--preference", "7"], 2, "preference"),
        (["RUN", "--max-hours", "-1"], 2, "max_hours must be a positive number, got -1"),
        (["RUN", "--preference", "0.5", "--examples-per-step", "3"], 2, "examples_per_step"),
        (["EMPTY"], 1, "holds no records of this user"),
        (["SPOOL"], 2, "holds 3 runs: give the folder of one"),
        (["RUN", "-o", "no/such/folder/r.html"], 1, "there is no folder no/such/folder"),
        (["RUN", "--url", "http://127.0.0.1:9"], 1, "its records are here: noisescale report /"),
        ([UNKNOWN, "--url", "http://127.0.0.1:9"], 1, "give the run's folder of records instead"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_a_status(
    arguments, status, said, spool: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    run_id = noisescale.init(project="reports", name="here").id if "RUN" in arguments else ""
    noisescale.finish()
    given = {"RUN": run_id, "EMPTY": str(tmp_path / "empty"), "SPOOL": str(spool)}

    found = main(["report", *(given.get(one, one) for one in arguments)])

    assert said in capsys.readouterr().err
    assert found == status
    assert list(tmp_path.glob("*.html")) == []


def test_a_file_that_cannot_be_replaced_is_refused_before_anything_is_read(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    status = main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")])

    assert (status, "cannot be written to: give another --output" in capsys.readouterr().err) == (1, True)


def test_a_stream_that_was_copied_elsewhere_still_belongs_to_its_run(spool: Path, tmp_path: Path) -> None:
    copy = tmp_path / "from the cluster" / "x"
    shutil.copytree(next(records_of(spool, "whole").iterdir()), copy)

    assert [records_as_server.run_of(folder) for folder in stream_folders(tmp_path)] == [
        records_of(spool, "whole").name
    ]


def test_without_server_and_dashboard_installed_a_folder_says_what_to_install(
    spool: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(records_as_server, "entry_points", lambda group: [])

    status = main(["report", str(records_of(spool, "whole")), "-o", str(tmp_path / "r.html")])

    assert status == 1
    assert "pip install ./client ./server ./dashboard" in capsys.readouterr().err


def test_a_database_that_cannot_run_says_why_and_leaves_nothing(
    spool: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    @contextmanager
    def refusing(read_from: str) -> Iterator[tuple[str, str]]:
        raise RuntimeError(f"embedded Postgres cannot run here for {read_from}")
        yield "", ""

    monkeypatch.setattr(records_as_server, "_installed", lambda: refusing)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)

    status = main(["report", str(records_of(spool, "whole")), "-o", str(tmp_path / "r.html")])

    assert status == 1
    assert "no server can be started to read the records: embedded Postgres cannot run" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_a_dashboard_is_told_from_one_that_has_the_page(
    live_server: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    run = make_run("no dashboard")
    monkeypatch.setattr(command.HttpServer, "read", lambda self, path: (404, '{"title": "Not found"}'))

    status = main(["report", run.id, "-o", str(tmp_path / "r.html")])

    assert status == 1
    assert "pip install ./dashboard" in capsys.readouterr().err
