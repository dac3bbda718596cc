"""Documentation that may not rot: what code offers, the docs name."""

import re
from pathlib import Path

import pytest

import noisescale
import noisescale_dashboard.serving.settings
from noisescale import config
from noisescale_core.estimators.uncertainty import Reason, State
from noisescale_server.api.ingest.wire_schemas import Measurements
from noisescale_server.api.platform.errors import PROBLEMS
from noisescale_server.process.settings import Settings

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_of_the_server_is_documented(name):
    assert f"`NOISESCALE_{name.upper()}`" in text("docs/operating.md")


@pytest.mark.parametrize("name", sorted(noisescale_dashboard.serving.settings.DashboardSettings.model_fields))
def test_every_setting_of_the_dashboard_is_documented(name):
    assert f"`NOISESCALE_DASHBOARD_{name.upper()}`" in text("docs/operating.md")


@pytest.mark.parametrize("name", sorted(config.Config.__dataclass_fields__))
def test_every_setting_of_the_client_is_documented(name):
    variable = {"rank": "RANK", "folders": "NOISESCALE_DIR"}.get(name, f"NOISESCALE_{name.upper()}")

    assert f"`{variable}`" in text("docs/operating.md")


@pytest.mark.parametrize("slug", sorted({slug for _, slug, _ in PROBLEMS.values()}))
def test_every_kind_of_problem_is_documented(slug):
    assert f"`/errors/{slug}`" in text("docs/operating.md")


@pytest.mark.parametrize("field", list(Measurements.model_fields))
def test_every_wire_column_is_documented_with_its_meaning(field):
    assert re.search(rf"^\| `{field}` \| \S", text("docs/wire.md"), re.MULTILINE)


def test_no_hint_installs_by_a_name_that_no_package_index_has():
    """Anybody may take such a name: our own five are installed from a checkout."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
    parts = ("client", "lab", "importers", "server", "dashboard")
    code = [path for part in parts for path in (ROOT / part / "src").rglob("*.py")]

    found = [
        f"{path.relative_to(ROOT)}: pip install {hint}"
        for path in (*pages, *code)
        for hint in re.findall(r"pip install ([^`\n#,;:()]*)", path.read_text())
        if re.search(r"(^| )[\"']?noisescale", hint)
    ]

    assert found == []


@pytest.mark.parametrize("state", list(State))
def test_every_state_is_in_the_glossary(state):
    assert f"| `{state}` |" in text("docs/glossary.md")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_documented(reason):
    assert f"`{reason}`" in text("docs/rest.md")


def test_every_test_that_the_page_on_delivery_names_exists():
    named, path = [], ""
    for at, name in re.findall(r"`((?:\w+/)*\w*\.py|)::(test_\w+)`", text("docs/delivery.md")):
        path = at or path  # a name without a file is of the one before
        named.append((path, name))

    assert len(named) > 30
    assert [(at, name) for at, name in named if f"def {name}(" not in text(f"tests/{at}")] == []


def test_every_file_that_the_architecture_page_names_exists():
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text("docs/architecture.md"))
    roots = (".", "client/src/noisescale", "server/src/noisescale_server", "dashboard/src/noisescale_dashboard")
    roots = (*roots, "client/src/noisescale_core", "lab/src/noisescale_lab", "client/src", "lab/src", "server/src")

    missing = [name for name in named if not any((ROOT / root / name).exists() for root in roots)]

    assert len(named) > 10
    assert missing == []


def test_decisions_are_numbered_without_gaps():
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs/decisions").glob("*.md"))

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]))
def test_prose_wraps_at_120(page):
    assert [line for line in prose(page.read_text()) if len(line) > 120] == []


def prose(text):
    """Lines outside of code and tables; what cannot be broken (code, addresses) counts as one letter."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in text.splitlines():
        if not re.match(r"\s*\||\s{4,}|#|!?\[", line):
            yield re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "x", line)


def test_the_python_reference_names_all_that_the_package_exports() -> None:
    named = set(re.findall(r"auto\w+:: noisescale\.(\w+)", (ROOT / "docs" / "reference" / "python.md").read_text()))

    assert set(noisescale.__all__) - {"__version__"} == named
