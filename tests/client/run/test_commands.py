import argparse
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from noisescale import commands
from stub_server import http_stub


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.delenv("NOISESCALE_URL", raising=False)


def use_entry_points(monkeypatch, **values):
    points = [EntryPoint(name, value, commands.GROUP) for name, value in values.items()]
    monkeypatch.setattr(commands, "entry_points", lambda group: points)


def test_status_of_a_server_that_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with http_stub() as stub:
        status = commands.main(["status", "--url", stub.url])

        assert status == 0
        assert f"server   {stub.url}" in capsys.readouterr().out


def test_status_of_a_server_whose_database_is_away(capsys):
    with http_stub() as stub:
        stub.answers.append((503, {}, b""))

        assert commands.main(["status", "--url", stub.url]) == 1
        assert "not ready" in capsys.readouterr().out


def test_status_without_a_server_says_what_to_do(capsys):
    assert commands.main(["status", "--url", "http://127.0.0.1:9"]) == 1

    out = capsys.readouterr().out
    assert "not reachable" in out
    assert "noisescale up" in out


def test_status_names_a_wrong_setting(capsys):
    assert commands.main(["status", "--url", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.thorough
def test_a_call_of_a_command_warns_of_nothing():
    """Whatever a library deprecates is mended and not shown to who asks for help."""
    code = "import noisescale_server.api.access.login_provider, noisescale.commands as c; c.main(['--help'])"

    found = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, timeout=60)

    assert (found.stderr, "up " in found.stdout) == ("", True)


@pytest.mark.slow
def test_without_a_command_the_help_is_shown(capsys):
    assert commands.main([]) == 2
    assert "status" in capsys.readouterr().out


def add_twice(subparsers):
    parser = subparsers.add_parser("twice")
    parser.add_argument("number", type=int)
    parser.set_defaults(run=lambda arguments: arguments.number * 2)


def test_other_distributions_add_commands(monkeypatch):
    monkeypatch.setattr(argparse, "add_twice", add_twice, raising=False)
    use_entry_points(monkeypatch, twice="argparse:add_twice")

    assert commands.main(["twice", "21"]) == 42


@pytest.mark.parametrize("value", ["no_such_module:register", "argparse:no_such_function"])
def test_a_broken_plug_in_is_named_and_the_others_work(monkeypatch, capsys, value):
    use_entry_points(monkeypatch, broken=value, status="noisescale.commands.status:register")

    assert commands.main([]) == 2

    said = capsys.readouterr()
    assert "'broken'" in said.err
    assert "status" in said.out


def test_a_command_loads_no_other_one(monkeypatch, capsys):
    """The server's commands take seconds to import."""
    use_entry_points(monkeypatch, status="noisescale.commands.status:register", other="no_such_module:register")

    assert commands.main(["status", "--url", "http://127.0.0.1:9"]) == 1

    assert "broken" not in capsys.readouterr().err
