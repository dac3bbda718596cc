"""What a job tells the person who started it: also in a script that has set up no logging, once, and by one rank."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import noisescale
from client_runs import make_kept_run, make_model
from noisescale import guard
from noisescale.capture.data_parallel.job import OneProcess

PLAIN_SCRIPT = """
import torch

import noisescale

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
noisescale.watch(model, optimizer)
for _ in range(60):
    x = torch.randn(64, 8)
    loss = ((model(x) - x.sum(1, keepdim=True) - torch.randn(64, 1)) ** 2).mean()
    loss.backward()
    noisescale.log_gradients(loss=loss)
    optimizer.step()
    optimizer.zero_grad()
"""


OF_NORMS = """
import noisescale
for step in range(20):
    noisescale.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=2.0 + step % 3, big_sq_norm=1.0)
"""


def said_by(script: str, tmp_path: Path, **environ: str) -> list[str]:
    """Lines on standard error of a script without a server."""
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NOISESCALE_DIR": str(tmp_path), "NOISESCALE_MODE": "offline", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert found.stdout == ""
    return found.stderr.splitlines()


@pytest.mark.processes
@pytest.mark.thorough
def test_a_plain_script_says_what_it_measures_what_it_found_and_what_to_do(tmp_path):
    said = said_by(PLAIN_SCRIPT, tmp_path)

    assert all(line.startswith("noisescale: ") for line in said)
    assert len(set(said)) == len(said)
    assert said[0].startswith("noisescale: measuring Linear from ")
    assert any("one backward a step" in line for line in said)
    assert any("noise scale after 16 measured steps: " in line for line in said)
    last = said[-1]
    assert last.startswith("noisescale: noise scale of default: ")
    assert "], z = " in last
    assert "noisescale sync " in last


@pytest.mark.processes
@pytest.mark.thorough
def test_a_job_that_is_disabled_or_told_to_be_quiet_says_nothing(tmp_path):
    quiet = "import logging; logging.getLogger('noisescale').setLevel('ERROR')\n"

    assert said_by(OF_NORMS, tmp_path, NOISESCALE_MODE="disabled") == []
    assert said_by(quiet + OF_NORMS, tmp_path) == []
    assert len(said_by(OF_NORMS, tmp_path)) == 2


@pytest.fixture
def plain_logging() -> logging.Logger:
    """A logger as in a script that has set up nothing: it knows no root, which has pytest's own handlers."""
    logger = logging.Logger("told")
    guard.show(logger)
    return logger


def test_without_logging_each_message_is_on_standard_error_with_its_sender(plain_logging, capsys):
    plain_logging.info("one step in %d", 3)
    plain_logging.debug("of no use to people")
    plain_logging.warning("gradients are gone")

    assert capsys.readouterr().err == "noisescale: one step in 3\nnoisescale: gradients are gone\n"


def test_where_the_root_has_a_handler_it_alone_shows_a_message(plain_logging, capsys, caplog):
    plain_logging.parent = logging.getLogger()

    plain_logging.info("once")

    assert (caplog.messages, capsys.readouterr().err) == (["once"], "")


def test_a_handler_of_the_client_s_logger_takes_the_place_of_ours(plain_logging, capsys):
    plain_logging.addHandler(logging.NullHandler())

    plain_logging.warning("nobody wants to see it")

    assert capsys.readouterr().err == ""


def test_a_root_above_warning_is_somebodys_choice(plain_logging, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "level", logging.ERROR)

    plain_logging.warning("not wanted")
    plain_logging.error("wanted")

    assert capsys.readouterr().err == "noisescale: wanted\n"


def test_a_level_of_the_logger_itself_stays():
    logger = logging.Logger("told", logging.ERROR)

    guard.show(logger)

    assert logger.level == logging.ERROR


def test_only_the_rank_that_sends_speaks(caplog, monkeypatch):
    caplog.set_level("INFO", "noisescale")
    monkeypatch.setattr(OneProcess, "is_first", False)
    run, _ = make_kept_run()
    run.watch(model := make_model(), torch.optim.SGD(model.parameters(), lr=0.1))

    run.log_gradients()  # without a backward

    assert caplog.messages == []


def test_a_run_says_where_its_page_is_once_and_only_where_something_is_sent(tmp_path, caplog):
    caplog.set_level("INFO", logger="noisescale")
    folder = {"mode": "online", "url": "http://me:secret@127.0.0.1:9", "name": "digits-b256"}

    sent = noisescale.init(**folder)
    kept, disabled = noisescale.init(mode="offline"), noisescale.init(mode="disabled")

    assert sent.url == f"http://127.0.0.1:9/runs/{sent.id}"
    assert (kept.url, disabled.url) == (None, None)
    assert [line for line in caplog.messages if "/runs/" in line] == [f"run digits-b256: {sent.url}"]
    for run in (sent, kept, disabled):
        run.finish(timeout_seconds=0.1)
