"""up, serve and migrate, as processes: what they say, what they leave, and how they end."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from noisescale_server.cli import commands
from noisescale_server.cli import keys as keys_command
from noisescale_server.cli import people as people_command
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process import discovery, migrating, serving
from noisescale_server.process.settings import Settings

pytestmark = pytest.mark.processes

COMMAND_LINE = """
import argparse, sys
from noisescale_server.cli import commands
subparsers = (parser := argparse.ArgumentParser()).add_subparsers()
for register in (commands.register_up, commands.register_serve, commands.register_migrate):
    register(subparsers)
arguments = parser.parse_args()
sys.exit(arguments.run(arguments))
"""


class Server:
    """A running `up` or `serve`, in a session of its own as in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND_LINE, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._known: list[psutil.Process] = []
        self.said = self.process.stdout.readline()
        self.url = self.said.split(" is at ")[-1].split()[0] if " is at " in self.said else ""

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30)

    def descendants(self) -> list[psutil.Process]:
        self._known = psutil.Process(self.process.pid).children(recursive=True)
        return self._known

    def kill(self) -> None:
        """End it and whatever it started that is known."""
        known = self.descendants() if self.process.poll() is None else self._known
        self.process.kill()
        for process in psutil.wait_procs(known, timeout=10)[1]:
            process.kill()
        self.process.communicate()

    def exit_code_and_errors(self) -> tuple[int, str]:
        try:
            errors = self.process.communicate(timeout=90)[1]
        except subprocess.TimeoutExpired:
            pytest.fail(f"still there: {[described(one) for one in [psutil.Process(self.process.pid), *self._known]]}")
        return self.process.returncode, errors


def described(process: psutil.Process) -> str:
    """What a process that should have ended is and does."""
    try:
        waits_for = Path(f"/proc/{process.pid}/wchan").read_text()
        return f"{process.pid} of {process.ppid()}: {process.cmdline()[-3:]}, {process.status()} in {waits_for}"
    except (psutil.NoSuchProcess, OSError):
        return f"{process.pid}: gone"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder for data and the server's address, open to the user that Postgres runs as when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="noisescale-test-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NOISESCALE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NOISESCALE_DATA_DIR", str(home / "data"))
    monkeypatch.setenv("NOISESCALE_DIR", str(home / "run"))


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start servers; what is left of them ends with the test."""
    servers: list[Server] = []

    def start_one(*arguments: str) -> Server:
        servers.append(Server(*arguments))
        return servers[-1]

    yield start_one

    for server in servers:
        server.kill()


@contextlib.contextmanager
def hang_ups(handled: signal.Handlers) -> Iterator[None]:
    """For the block, processes are started with this handling of SIGHUP, whatever these tests were started with."""
    before = signal.signal(signal.SIGHUP, handled)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def run(*arguments: str) -> int:
    """The exit code of a command run here."""
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    registers = (
        commands.register_up,
        commands.register_serve,
        commands.register_migrate,
        keys_command.register_keys,
        people_command.register_people,
    )
    for register in registers:
        register(subparsers)
    parsed = parser.parse_args(arguments)
    return parsed.run(parsed)


class TestUp:
    def test_serves_a_migrated_database_and_ends_cleanly_on_sigterm(self, start, home):
        server = start("up", "--port", "0")
        file = home / "run" / "server.json"
        announced, mode = json.loads(file.read_text()), file.stat().st_mode & 0o777
        link = server.process.stdout.readline()
        ready, refused = server.get("/readyz"), server.get("/api/v1/runs")
        with httpx.Client(follow_redirects=True) as browser:
            page = browser.get(link.split()[1] + "&next=/openapi")
        started = server.descendants()
        programs = {process.name() for process in started}

        server.process.terminate()

        assert server.exit_code_and_errors() == (0, "")
        assert server.said == f"noisescale is at {server.url} (Ctrl-C stops it)\n"
        assert link == f"open {server.url}/login?token={announced['key']}\n"
        assert (announced, mode) == ({"url": server.url, "pid": server.process.pid, "key": announced["key"]}, 0o600)
        assert (page.status_code, page.url.path) == (200, "/openapi")
        assert refused.status_code == 401
        assert ready.status_code == 200
        assert programs == {"postgres"}
        assert psutil.wait_procs(started, timeout=5)[1] == []
        assert not file.exists()

    @pytest.mark.slow
    @pytest.mark.alone
    def test_answers_fast_with_several_workers_and_ends_cleanly_on_ctrl_c(self, start, home):
        """On the asyncio loop every request of a kept connection takes 44 ms when several workers share the socket."""
        server = start("up", "--port", "0", "--workers", "2")
        started = server.descendants()
        seconds = []
        with httpx.Client(base_url=server.url, timeout=30) as client:
            client.get("/livez")
            key = json.loads((home / "run" / "server.json").read_text())["key"]
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
            for _ in range(30):
                before = time.perf_counter()
                answer = client.post("/api/v1/runs", content=b"{}", headers=headers)
                assert answer.status_code == 422
                seconds.append(time.perf_counter() - before)

        os.killpg(server.process.pid, signal.SIGINT)

        assert server.exit_code_and_errors() == (0, "")
        assert statistics.median(seconds) < 0.02
        assert psutil.wait_procs(started, timeout=5)[1] == []

    @pytest.mark.slow
    def test_leaves_neither_workers_nor_postgres_when_it_is_killed(self, start):
        server = start("up", "--port", "0", "--workers", "2")
        server.get("/livez")
        started = server.descendants()

        server.process.kill()

        assert psutil.wait_procs(started, timeout=15)[1] == []
        assert len(started) >= 3

    @pytest.mark.slow
    def test_ends_when_its_terminal_is_closed(self, start):
        """uvicorn by itself would restart the workers."""
        with hang_ups(signal.SIG_DFL):
            server = start("up", "--port", "0", "--workers", "2")
        server.get("/livez")
        server.descendants()  # told where one of them does not end

        server.process.send_signal(signal.SIGHUP)

        assert server.exit_code_and_errors() == (0, "")

    @pytest.mark.slow
    def test_goes_on_when_its_terminal_is_closed_under_nohup(self, start):
        with hang_ups(signal.SIG_IGN):
            server = start("up", "--port", "0", "--workers", "2")
        server.get("/livez")
        before = {one.pid for one in server.descendants()}

        server.process.send_signal(signal.SIGHUP)

        time.sleep(2)  # four times as long as it would take until it ends
        assert server.get("/livez").status_code == 200
        assert before <= {one.pid for one in server.descendants()}

    def test_a_port_that_is_taken_is_one_sentence_with_the_way_out(self, capsys, home):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]

            exit_code = run("up", "--port", str(port))

        errors = capsys.readouterr().err
        assert exit_code == 1
        assert errors == (
            f"noisescale: cannot listen on 127.0.0.1 port {port} (Address already in use): "
            "choose another with --port, or 0 for any free one\n"
        )

    def test_a_second_one_on_the_same_data_is_refused_with_the_owners_pid(self, home, capsys):
        with EmbeddedPostgres(home / "data" / "postgres"):
            exit_code = run("up", "--port", "0")

        assert exit_code == 1
        assert f"belongs to process {os.getpid()}, which is running: stop that process" in capsys.readouterr().err

    def test_a_setting_that_is_no_number_is_named(self, monkeypatch, capsys):
        monkeypatch.setenv("NOISESCALE_PORT", "banana")

        exit_code = run("up")

        assert exit_code == 1
        assert "setting port (NOISESCALE_PORT) is 'banana'" in capsys.readouterr().err


TEAM = {
    "AUTH": "required",
    "SECRET_KEY": "Vw3rT9-qLk2_x8ZpQ0sDfGhJ4bNmC6vB",
    "PUBLIC_URL": "https://noisescale.example.com",
}


class TestTeamServer:
    """Each bad configuration is in tests/server/access/test_start_policy.py."""

    def test_one_that_anybody_could_enter_does_not_start(self, capsys):
        exit_code = run("up", "--host", "0.0.0.0")

        assert exit_code == 1
        assert "listening on 0.0.0.0 lets others in" in capsys.readouterr().err

    @pytest.mark.slow
    def test_it_asks_for_an_admin_and_lets_the_first_one_in_by_a_link(self, monkeypatch, capsys, start):
        with EmbeddedPostgres.throw_away() as postgres:
            monkeypatch.setenv("NOISESCALE_DATABASE_URL", postgres.url(driver="postgresql"))
            monkeypatch.setenv("NOISESCALE_ALLOW_UNSAFE_DATABASE", "true")
            for name, value in TEAM.items():
                monkeypatch.setenv(f"NOISESCALE_{name}", value)
            run("migrate")
            without = run("serve", "--port", "0", "--behind-tls-proxy")
            refusal = capsys.readouterr().err
            made = run("keys", "create-admin", "Ada")
            link = capsys.readouterr().out.splitlines()[-1]
            again = run("keys", "create-admin", "Eve")
            said_again = capsys.readouterr().err
            keyed = run("keys", "create", "job", "--project", "vision")
            key = capsys.readouterr().out.strip()
            listed = run("keys", "list")
            lines = capsys.readouterr().out
            server = start("serve", "--port", "0", "--behind-tls-proxy")
            port = listening_port(server.process.pid)
            url, origin = f"http://127.0.0.1:{port}", {"Origin": TEAM["PUBLIC_URL"]}
            form = {"link": link.partition("link=")[2]}
            forged = httpx.post(f"{url}/login", data=form, headers={"Origin": "https://evil.example"})
            entered = httpx.post(f"{url}/login", data=form, headers=origin)
            used_up = httpx.post(f"{url}/login", data=form, headers=origin)
            cookie = entered.headers["set-cookie"].partition(";")[0]
            me = httpx.get(f"{url}/api/v1/me", headers={"Cookie": cookie}).json()
            job = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {key}"}).json()
            server.process.terminate()
            assert server.exit_code_and_errors() == (0, "")

        assert (without, made, again, keyed, listed) == (1, 0, 1, 0, 0)
        assert "noisescale keys create-admin" in refusal
        assert "there is an admin already" in said_again
        assert link.startswith("https://noisescale.example.com/login?link=")
        assert key.split("_")[2] in lines
        assert key not in lines
        assert (forged.status_code, entered.status_code, used_up.status_code) == (403, 303, 403)
        assert entered.headers["set-cookie"].startswith("__Host-noisescale=")
        assert {"Secure", "HttpOnly"} <= set(entered.headers["set-cookie"].split("; "))
        assert (me["name"], "manage" in me["everywhere"]) == ("Ada", True)
        assert job["projects"] == [{"project": "vision", "rights": ["identity", "cursor", "append"]}]


def listening_port(pid: int) -> int:
    """The port on which the process takes connections."""
    sockets = psutil.Process(pid).net_connections("tcp")
    return next(one.laddr.port for one in sockets if one.status == psutil.CONN_LISTEN)


class TestServeAndMigrate:
    def test_serve_refuses_without_a_database_and_says_the_way_out(self, capsys):
        exit_code = run("serve")

        assert exit_code == 1
        assert "set NOISESCALE_DATABASE_URL=postgresql://" in capsys.readouterr().err

    @pytest.mark.slow
    def test_serve_answers_from_the_database_that_migrate_has_prepared(self, start, monkeypatch, capsys):
        with EmbeddedPostgres.throw_away() as postgres:
            monkeypatch.setenv("NOISESCALE_DATABASE_URL", postgres.url(driver="postgresql"))
            monkeypatch.setenv("NOISESCALE_ALLOW_UNSAFE_DATABASE", "true")
            exit_code = run("migrate")
            server = start("serve", "--port", "0")
            ready = server.get("/readyz")
            server.process.terminate()

            assert server.exit_code_and_errors() == (0, "")

        assert (exit_code, capsys.readouterr().out) == (0, "the database has the newest schema\n")
        assert ready.status_code == 200

    def test_serve_refuses_a_database_that_may_lose_what_it_commits(self, postgres, monkeypatch, capsys):
        monkeypatch.setenv("NOISESCALE_DATABASE_URL", postgres.url())

        exit_code = run("serve", "--port", "0")

        assert exit_code == 1
        said = capsys.readouterr().err
        assert "the database has fsync=off, full_page_writes=off, synchronous_commit=off and may lose" in said
        assert "NOISESCALE_ALLOW_UNSAFE_DATABASE=true" in said


class TestMigrationsFolder:
    def test_the_wheels_folder_comes_first(self, tmp_path, monkeypatch):
        (tmp_path / "env.py").touch()
        monkeypatch.setattr(migrating, "_IN_THE_WHEEL", tmp_path)

        assert migrating.migrations_folder() == tmp_path

    def test_a_checkout_has_its_own(self):
        assert (migrating.migrations_folder() / "versions").is_dir()

    def test_an_installation_without_any_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(migrating, "_IN_THE_WHEEL", tmp_path)
        monkeypatch.setattr(migrating, "_IN_THE_CHECKOUT", tmp_path)

        with pytest.raises(FileNotFoundError, match="install noisescale-server again"):
            migrating.migrations_folder()


class TestDiscovery:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({"NOISESCALE_DIR": "/n", "XDG_STATE_HOME": "/x"}, Path("/n/server.json")),
            ({"XDG_STATE_HOME": "/x"}, Path("/x/noisescale/server.json")),
            ({}, Path.home() / ".local/state/noisescale/server.json"),
        ],
    )
    def test_the_file_is_where_the_client_looks(self, environment, expected):
        assert discovery.server_file(environment) == expected

    def test_a_file_that_another_server_wrote_meanwhile_stays(self, tmp_path):
        file = tmp_path / "server.json"

        with discovery.announced("http://127.0.0.1:1", "key", file):
            file.write_text('{"url": "http://127.0.0.1:2", "pid": 1}')

        assert "127.0.0.1:2" in file.read_text()

    def test_a_server_that_starts_beside_another_one_leaves_its_file_alone(self, tmp_path):
        file = tmp_path / "server.json"
        with socket.create_server(("127.0.0.1", 0)) as other:
            first = f"http://127.0.0.1:{other.getsockname()[1]}"
            file.write_text(json.dumps({"url": first, "pid": os.getppid(), "key": "its own"}))

            with discovery.announced("http://127.0.0.1:2", "key", file) as found:
                during = json.loads(file.read_text())

        assert found == first
        assert (during["url"], during["key"]) == (first, "its own")
        assert json.loads(file.read_text()) == during

    @pytest.mark.parametrize("content", ['{"url": "http://127.0.0.1:9", "pid": %d}', '{"url": 7, "pid": %d}', "[]"])
    def test_a_file_of_a_server_that_is_gone_is_replaced(self, tmp_path, content):
        file = tmp_path / "server.json"
        file.write_text(content % os.getppid() if "%" in content else content)

        with discovery.announced("http://127.0.0.1:2", "key", file) as found:
            assert json.loads(file.read_text())["url"] == "http://127.0.0.1:2"

        assert found is None
        assert not file.exists()


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("::1", "http://[::1]:")]
)
def test_the_address_told_is_one_that_this_machine_reaches(host, url):
    with serving.listen(Settings(host=host, port=0)) as listener:
        assert serving.url_of(listener) == f"{url}{listener.getsockname()[1]}"
