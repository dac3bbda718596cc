"""Every tutorial runs as it stands, against a real server, and prints what the page says it prints."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from served_app import free_port, wait_until_ready

pytestmark = pytest.mark.processes

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
SHELL_ONLY = "a_team_server"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(page.stem for page in TUTORIALS.glob("*.md") if page.stem != SHELL_ONLY))
def test_the_code_of_a_tutorial_runs_and_prints_what_the_page_says(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""

    for kind, text in BLOCK.findall((TUTORIALS / f"{name}.md").read_text()):
        if kind == "python":
            exec(compile(text, f"{name}.md", "exec"), names)
            printed = capsys.readouterr().out
        else:
            missing = [line for line in text.splitlines() if shape(line) not in shape(printed)]
            assert missing == [], f"printed:\n{printed}"


def shape(text):
    """The text without its numbers, which differ a little between machines."""
    return re.sub(r"\d[\d,.]*", "#", text)


@pytest.mark.slow
def test_the_team_server_is_set_up_by_the_commands_of_its_tutorial(new_database, tmp_path):
    shell = Shell((TUTORIALS / f"{SHELL_ONLY}.md").read_text(), tmp_path, new_database())
    for name in ("NOISESCALE_AUTH", "NOISESCALE_SECRET_KEY", "NOISESCALE_PUBLIC_URL"):
        shell.export(name)

    shell.run("noisescale migrate")
    link = shell.run("noisescale keys create-admin")
    with shell.background("noisescale serve") as address:
        key = re.search(r"ns_w_\S+", shell.run("noisescale keys create "))
        headers = {"Authorization": f"Bearer {key[0]}", "Host": "noisescale.example.com", "X-Forwarded-Proto": "https"}
        me = httpx.get(f"{address}/api/v1/me", headers=headers)

    assert "https://noisescale.example.com/login" in link
    assert me.status_code == httpx.codes.OK, me.text


class Shell:
    """Runs lines of a page's shell blocks, found by how they begin, with what was exported."""

    def __init__(self, page, folder, database_url):
        blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        self.lines = [line for block in blocks for line in block.splitlines()]
        self.port = free_port()
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
        self.environment = theirs | {
            "NOISESCALE_DATABASE_URL": database_url,
            "NOISESCALE_DIR": str(folder),
            "NOISESCALE_PORT": str(self.port),
            "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def line(self, beginning):
        [found] = [line for line in self.lines if line.startswith(beginning)]
        return found

    def export(self, name):
        line = self.line(f"export {name}=")
        self.environment[name] = self._output(f"{line}; printf %s ${name}")

    def run(self, beginning):
        return self._output(self.line(beginning))

    @contextmanager
    def background(self, beginning):
        process = subprocess.Popen(["bash", "-ec", f"exec {self.line(beginning)}"], env=self.environment)
        try:
            wait_until_ready(f"http://127.0.0.1:{self.port}", process)
            yield f"http://127.0.0.1:{self.port}"
        finally:
            process.terminate()
            process.wait(timeout=30)

    def _output(self, command):
        how = {"env": self.environment, "capture_output": True, "text": True, "timeout": 120, "check": False}
        done = subprocess.run(["bash", "-ec", command], **how)
        assert done.returncode == 0, done.stderr
        return done.stdout
