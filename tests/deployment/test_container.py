"""The image's command and health check, and the Compose file, as they are written; no container is started."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from noisescale_server.embedded import EmbeddedPostgres
from served_app import free_port

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SECRETS = {
    "POSTGRES_PASSWORD": "not used here",
    "NOISESCALE_DATABASE_PASSWORD": "nor this one",
    "NOISESCALE_SECRET_KEY": "Vw3rT9-qLk2_x8ZpQ0sDfGhJ4bNmC6vB",
    "NOISESCALE_PUBLIC_URL": "https://noisescale.example.com",
}


def command_after(word: str) -> list[str]:
    """The list behind the last such word of the Dockerfile."""
    found: list[str] = json.loads(re.findall(rf"{word}.*?(\[.*\])", DOCKERFILE)[-1])
    return found


def environment_of_compose() -> dict[str, str]:
    """The service's variables, those that whoever starts it gives filled in."""
    given: dict[str, str] = yaml.safe_load(COMPOSE)["services"]["noisescale"]["environment"]
    variable = re.compile(r"\${(\w+)(?::-([^}]*))?[^}]*}")
    return {name: variable.sub(lambda found: SECRETS.get(found[1]) or found[2], value) for name, value in given.items()}


class TestCompose:
    def test_the_specification_accepts_it(self) -> None:
        PyCompose.from_yaml(COMPOSE).to_spec()

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("read_only:", "readonly:"),
            ("read_only: true", "read_only: [true]"),
            ("service_healthy", "service_well"),
            ("127.0.0.1:8321:8321", "127.0.0.1:http:8321"),
            ("retries:", "tries:"),
        ],
    )
    def test_a_slip_is_noticed(self, right: str, wrong: str) -> None:
        assert right in COMPOSE

        with pytest.raises(ValueError, match=r"^services\."):
            PyCompose.from_yaml(COMPOSE.replace(right, wrong)).to_spec()

    def test_the_server_may_do_little_and_is_reached_from_this_machine_only(self) -> None:
        service: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]["noisescale"]

        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])

    def test_its_database_is_a_postgres_beside_it_never_the_embedded_one(self) -> None:
        given = environment_of_compose()

        assert given["NOISESCALE_DATABASE_URL"].startswith("postgresql+asyncpg://")
        assert "NOISESCALE_DATA_DIR" not in given
        assert " up" not in command_after("\nCMD")[-1]

    def test_the_server_does_not_know_the_owner_of_the_tables(self) -> None:
        services: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
        server, migrate = services["noisescale"], services["migrate"]

        assert "POSTGRES_PASSWORD" not in str(server["environment"])
        assert "NOISESCALE_MIGRATION_DATABASE_URL" in migrate["environment"]
        assert server["environment"]["NOISESCALE_DATABASE_URL"] == migrate["environment"]["NOISESCALE_DATABASE_URL"]
        assert server["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert server["command"] == ["noisescale", "serve"]

    def test_the_server_believes_what_its_proxy_says_of_addresses(self) -> None:
        assert json.loads(environment_of_compose()["NOISESCALE_TRUSTED_PROXIES"])

    def test_without_a_profile_there_are_postgres_a_migration_and_the_server_alone(self) -> None:
        services: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]

        assert [name for name, one in services.items() if "profiles" not in one] == [
            "postgres",
            "migrate",
            "noisescale",
        ]
        assert {name for name, one in services.items() if one.get("profiles") == ["citus"]} == {
            "citus", "citus-worker-1", "citus-worker-2", "citus-nodes",
        }  # fmt: skip
        assert all("ports" not in one for name, one in services.items() if name != "noisescale")

    def test_what_runs_for_long_is_started_again_and_what_runs_once_is_not(self) -> None:
        services: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]

        once = {name for name, one in services.items() if one.get("restart") != "unless-stopped"}

        assert once == {"migrate", "citus-nodes"}
        assert all("restart" not in services[name] for name in once)

    @pytest.mark.parametrize("name", SECRETS)
    def test_no_secret_has_a_default(self, name: str) -> None:
        assert re.search(rf"\${{{name}:\?", COMPOSE)


class TestImage:
    def test_it_runs_as_nobody_of_importance(self) -> None:
        users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.M)

        assert users[-1] == re.findall(r"useradd .*--uid (\d+)", DOCKERFILE)[0] != "0"

    def test_no_secret_is_written_into_it(self) -> None:
        assert not re.search(r"(?i)^(ENV|ARG) .*(SECRET|PASSWORD|TOKEN|KEY)", DOCKERFILE, re.M)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """That of the container, with a Postgres of this test and a free port."""
    with EmbeddedPostgres.throw_away() as postgres:
        yield {
            **environment_of_compose(),
            "NOISESCALE_DATABASE_URL": postgres.url(),
            "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
            "NOISESCALE_PORT": f"{free_port()}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": f"{tmp_path}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def health_check(environment: dict[str, str]) -> int:
    command = [part.replace("8321", environment["NOISESCALE_PORT"]) for part in command_after("HEALTHCHECK[^[]*CMD")]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.slow
def test_its_command_migrates_and_serves_and_its_health_check_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command_after("\nCMD"), env=environment, cwd="/", stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    before = health_check(environment)
    with start() as without_admin:
        refusal = without_admin.communicate(timeout=120)[1]
    subprocess.run(["noisescale", "keys", "create-admin", "Ada"], env=environment, check=True, capture_output=True)
    with start() as server:
        deadline = time.monotonic() + 120
        while (health := health_check(environment)) and time.monotonic() < deadline and server.poll() is None:
            time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        errors = server.communicate(timeout=60)[1]

    assert before != 0
    assert without_admin.returncode != 0
    assert "noisescale keys create-admin" in refusal
    assert health == 0, errors
    assert server.returncode == 0, errors
    # the root file system may be read-only: what it writes are locks and logs below /tmp
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
