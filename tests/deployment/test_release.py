"""What a release is made of: archives, list of parts, workflows, and the files that a stranger meets first."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from compose_spec import PyCompose

import archives
import digests
import noisescale
import of_the_lock
import sbom
import upgrade

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
BIN = Path(sys.executable).parent
FAKE = "sha256:" + 64 * "a"


def says(*command: str) -> str:
    """What a checker prints; it is content with the files."""
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fits(schema: str, *files: str) -> None:
    """Raise with what the checker says, unless the files fit a schema that it brings."""
    # here, as it builds the grammar of addresses, which takes a second
    from check_jsonschema import main as check_jsonschema

    result = CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, "--force-filetype", "yaml", *files])
    assert result.exit_code == 0, result.output


def project(distribution: str) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / distribution / "pyproject.toml").read_text())["project"]
    return found


class TestVersion:
    @pytest.mark.parametrize("distribution", archives.DISTRIBUTIONS)
    def test_no_distribution_says_a_version_of_its_own(self, distribution: str) -> None:
        assert project(distribution)["dynamic"] == ["version"]
        assert "version" not in project(distribution)

    @pytest.mark.parametrize("distribution", archives.DISTRIBUTIONS)
    def test_each_has_the_licence_of_the_repository(self, distribution: str) -> None:
        assert (ROOT / distribution / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.processes
class TestWorkflows:
    def test_they_fit_their_schema_and_none_runs_without_end(self) -> None:
        files = sorted(map(str, GITHUB.glob("workflows/*.yml")))

        assert len(files) == 3
        for schema in ("vendor.github-workflows", "custom.github-workflows-require-timeout"):
            fits(schema, *files)

    def test_a_slip_in_one_is_noticed(self, tmp_path: Path) -> None:
        text = (GITHUB / "workflows/docs.yml").read_text()
        (tmp_path / "docs.yml").write_text(text.replace("runs-on:", "run-on:"))

        with pytest.raises(AssertionError, match="run-on"):
            fits("vendor.github-workflows", str(tmp_path / "docs.yml"))

    def test_nothing_that_they_use_can_be_exchanged_under_them(self) -> None:
        says("zizmor", "--offline", "--no-progress", str(GITHUB / "workflows"))

        used = [one for file in GITHUB.glob("workflows/*.yml") for one in re.findall(r"uses: (\S+)", file.read_text())]
        assert used
        assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one)] == []

    def test_what_they_run_exists(self) -> None:
        text = "".join(file.read_text() for file in GITHUB.glob("workflows/*.yml"))
        makefile = (ROOT / "Makefile").read_text()

        for target in re.findall(r"make (?:--\S+ )*(?:\d )?(?:--\S+ )*([a-z-]+)$", text, re.M):
            assert re.search(rf"^{target}:", makefile, re.M), target
        for script in re.findall(r"python3? (release/\w+\.py)", text):
            assert (ROOT / script).is_file(), script

    def test_the_index_is_asked_who_publishes_and_no_token_is_stored(self) -> None:
        text = (GITHUB / "workflows/release.yml").read_text()

        jobs = yaml.safe_load(text)["jobs"]
        assert jobs["publish"]["permissions"]["id-token"] == "write"
        assert "--trusted-publishing always" in text
        assert "secrets." not in text


class TestForms:
    def test_the_forms_of_issues_fit_their_schema(self) -> None:
        forms = [str(path) for path in sorted(GITHUB.glob("ISSUE_TEMPLATE/[0-9]*.yml"))]

        assert len(forms) == 3
        fits("vendor.github-issue-forms", *forms)
        fits("vendor.github-issue-config", str(GITHUB / "ISSUE_TEMPLATE/config.yml"))

    def test_the_citation_fits_the_citation_file_format(self) -> None:
        fits("vendor.citation-file-format", str(ROOT / "CITATION.cff"))


@pytest.mark.processes
def test_the_dockerfile_has_nothing_that_its_linter_minds() -> None:
    says("hadolint", "Dockerfile")


FILES = {name: (ROOT / name).read_text() for name in digests.FILES}


class TestDigests:
    def test_every_image_is_named_by_its_digest_in_a_release(self) -> None:
        names = digests.images(list(FILES.values()))
        known = dict.fromkeys(names, FAKE)

        filled = {name: digests.filled(text, known) for name, text in FILES.items()}

        assert names == ["python:3.13-slim", "postgres:18", "citusdata/citus:13.2"]
        assert digests.images(list(filled.values())) == []
        assert filled["Dockerfile"].count(f"FROM python:3.13-slim@{FAKE}") == 2
        assert f"FROM python:3.13-slim@{FAKE} AS build\n" in filled["Dockerfile"]
        assert f"    image: postgres@{FAKE}  # postgres:18\n" in filled["docker-compose.yml"]
        PyCompose.from_yaml(filled["docker-compose.yml"]).to_spec()

    def test_the_compose_file_of_a_release_builds_nothing_and_still_fits_its_specification(self) -> None:
        compose = digests.with_ours(FILES["docker-compose.yml"], f"ghcr.io/owner/noisescale:1.0@{FAKE}")

        assert "build" not in compose
        assert compose.count(f"image: ghcr.io/owner/noisescale@{FAKE}  # ghcr.io/owner/noisescale:1.0\n") == 2
        PyCompose.from_yaml(compose).to_spec()

    @pytest.mark.parametrize("digest", ["", "latest", "sha256:abc"])
    def test_what_is_no_digest_is_refused(self, digest: str) -> None:
        with pytest.raises(digests.NotADigest):
            digests.filled("FROM python:3.13-slim\n", {"python:3.13-slim": digest})
        with pytest.raises(digests.NotADigest):
            digests.with_ours("    build: .\n", f"image@{digest}")


class TestLists:
    def test_a_list_of_parts_that_does_not_fit_its_schema_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / sbom.NAME
        file.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"name": "x"}]}))

        with pytest.raises(sbom.NotValid, match="type"):
            sbom.check(file)

    def test_the_tool_that_publishes_is_the_one_of_the_lock(self) -> None:
        entry = of_the_lock.entries(["uv"], of_the_lock.LOCK.read_text())

        assert re.match(r"uv==\S+ \\\n", entry)
        assert entry.count("--hash=sha256:") == entry.count("\n") - 1 > 1

    def test_hashes_are_such_that_sha256sum_reads_them(self, tmp_path: Path) -> None:
        (tmp_path / "one.whl").write_text("content")
        archives.write_sums(tmp_path)

        subprocess.run(["sha256sum", "--check", archives.SUMS], cwd=tmp_path, check=True, capture_output=True)


BEFORE = {"run": ['{"id": 1, "name": "a", "old": 3}', '{"id": 2, "name": "b", "old": 4}'], "empty": []}


class TestUpgrade:
    def test_a_new_column_and_one_that_went_lose_no_row(self) -> None:
        after = {"run": ['{"id": 2, "name": "b", "new": 1}', '{"id": 1, "name": "a", "new": 1}']}

        assert upgrade.lost(BEFORE, after) == []

    @pytest.mark.parametrize(
        ("after", "said"),
        [
            ({"run": ['{"id": 1, "name": "a"}']}, "run: 1 of 2 rows"),
            ({"run": ['{"id": 1, "name": "a"}', '{"id": 2, "name": "c"}']}, "run: 1 of 2 rows"),
            ({"run": []}, "run: 2 of 2 rows"),
            ({}, "run: the table with 2 rows"),
        ],
    )
    def test_a_row_that_is_gone_or_changed_is_named(self, after: dict[str, list[str]], said: str) -> None:
        [found] = upgrade.lost(BEFORE, after)

        assert found.startswith(said)


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_archives_are_the_same_bytes_from_a_checkout_and_from_their_sdists(tmp_path: Path) -> None:
    built = archives.build(tmp_path / "dist")

    names = {name.split("-")[0] for name in built}
    assert len(built) == 2 * len(archives.DISTRIBUTIONS)
    (server,) = (tmp_path / "dist").glob("noisescale_server-*.whl")
    served = {name for name in zipfile.ZipFile(server).namelist() if "/documentation/" in name}
    assert {"index.html", "search/index.html", "tutorials/first_answer/index.html", "llms.txt"} <= {
        name.partition("/documentation/")[2] for name in served
    }
    assert names == {str(project(one)["name"]).replace("-", "_") for one in archives.DISTRIBUTIONS}
    assert all(f"-{noisescale.__version__}" in name for name in built)
    for wheel in (tmp_path / "dist").glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            assert [name for name in opened.namelist() if name.endswith("licenses/LICENSE")], wheel.name


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(1800)
def test_a_release_is_installed_elsewhere_used_and_takes_over_data_of_an_older_one(tmp_path: Path) -> None:
    """The data are those of a commit of before the server's rooms, written by its own code."""
    command = [sys.executable, "release/dist.py", "--folder", str(tmp_path / "dist"), "--upgrade-from", "81157f6"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows are there" in done.stdout
    parts = json.loads((tmp_path / "dist" / sbom.NAME).read_text())["components"]
    assert {"noisescale", "noisescale-server", "fastapi"} <= {part["name"] for part in parts}
    assert shutil.which("sha256sum") is not None
    subprocess.run(["sha256sum", "--check", archives.SUMS], cwd=tmp_path / "dist", check=True, capture_output=True)
