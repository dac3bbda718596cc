"""The locks: every file that is installed is known by its hash, and what the distributions want is in them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = ("image", "development", "integrations")
DISTRIBUTIONS = ("client", "lab", "importers", "server", "dashboard")
OURS = {"noisescale", "noisescale-lab", "noisescale-importers", "noisescale-server", "noisescale-dashboard"}
NOT_LOCKED = OURS | {"torch", "triton"}


def entries(lock: str) -> list[str]:
    """One text for each requirement of a lock, its hashes included."""
    text = (ROOT / f"locks/{lock}.txt").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [one for one in re.sub(r"\\\n\s*", " ", lines).splitlines() if one.strip()]


def pins(lock: str) -> dict[str, set[str]]:
    """By name, the versions that a lock has of it: more than one where they differ by platform."""
    found: dict[str, set[str]] = {}
    for entry in entries(lock):
        requirement = Requirement(entry.split(" --hash")[0])
        [pin] = requirement.specifier
        assert pin.operator == "==", entry
        found.setdefault(canonicalize_name(requirement.name), set()).add(pin.version)
    return found


def wanted(*files: str) -> list[Requirement]:
    """What files of requirements and distributions ask for by name."""
    found: list[str] = []
    for file in files:
        text = (ROOT / file).read_text()
        if file.endswith(".toml"):
            project = tomllib.loads(text)["project"]
            found += project["dependencies"]
        else:
            found += [line.split("#")[0].strip() for line in text.splitlines()]
    return [Requirement(one) for one in found if one]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_file_is_known_by_its_hash(lock: str) -> None:
    assert len(entries(lock)) > 50
    for entry in entries(lock):
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})(?= |$)", entry)
        assert hashes, entry
        assert len(hashes) == entry.count("--hash"), entry


@pytest.mark.parametrize("lock", [*LOCKS, "not-locked"])
def test_no_lock_names_an_index_or_an_address(lock: str) -> None:
    text = (ROOT / f"locks/{lock}.txt").read_text()

    assert not re.search(r"://|--(index|extra-index|find-links|trusted)", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_pytorch_and_ours_are_in_none(lock: str) -> None:
    assert not NOT_LOCKED & set(pins(lock))
    assert not [name for name in pins(lock) if name.startswith("nvidia-")]


@pytest.mark.parametrize(
    ("lock", "files"),
    [
        ("image", tuple(f"{one}/pyproject.toml" for one in ("client", "server", "dashboard"))),
        ("image", ("requirements-image.txt",)),
        ("development", tuple(f"{one}/pyproject.toml" for one in DISTRIBUTIONS)),
        ("development", ("requirements-dev.txt",)),
        ("integrations", ("requirements-integrations.txt",)),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_in_the_lock_in_a_version_that_does(lock: str, files: tuple[str, ...]) -> None:
    """It fails where a distribution wants something new and nobody has run `make lock`."""
    locked = pins(lock)
    missing = [
        str(one)
        for one in wanted(*files)
        if canonicalize_name(one.name) not in NOT_LOCKED
        and not any(Version(pin) in one.specifier for pin in locked.get(canonicalize_name(one.name), ()))
    ]

    assert missing == []


@pytest.mark.parametrize("lock", ["image", "development"])
def test_the_locks_agree(lock: str) -> None:
    everything = pins("integrations")

    assert {name: found for name, found in pins(lock).items() if everything.get(name, found) != found} == {}


def test_nothing_is_installed_by_its_name_alone() -> None:
    """But PyTorch with triton, which are the user's own, and our own distributions, without looking anything up."""
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    dockerfile = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"^\t.*\$\(PIP_INSTALL\)(.*)$", makefile, re.M)
    installs += re.findall(r"pip (?:install|wheel)(.*?)(?:&&|$)", dockerfile, re.M)

    free = [one for one in installs if "--require-hashes" not in one and "--no-index" not in one]
    assert len(installs) == 7
    assert "--require-hashes" in re.findall(r"^LOCKED := (.*)$", makefile, re.M)[0]
    for one in free:
        is_ours = "--no-deps --no-build-isolation" in one
        assert is_ours or "torch" in one, one
