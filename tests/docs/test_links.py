"""No link of a page is broken: files and headings by this test, addresses elsewhere by the list of whose they are."""

import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "arxiv.org",
    "doi.org",
    "github.com",
    "modelcontextprotocol.io",
    "www.contributor-covenant.org",
    "www.standardwebhooks.com",
}
"""Whose pages ours link to; nobody on the network is asked in a test. `-rP` prints every address."""


def pages() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split()]


@cache
def text_of(page: Path) -> str:
    """Without code, in which brackets mean other things."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`x`", text)


@cache
def headings(page: Path) -> set[str]:
    """As GitHub and MyST make names of them: lower case, without signs, spaces as hyphens."""
    found = re.findall(r"^#{1,6} +(.+?) *$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in found)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", text_of(page))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    broken = []
    for link in links(page):
        if urlsplit(link).scheme:
            continue
        address, _, mark = link.partition("#")
        target = (page.parent / address).resolve() if address else page
        if not target.exists() or (mark and target.suffix == ".md" and mark not in headings(target)):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_is_named_is_there(page: Path) -> None:
    """Prose names pages as `docs/measuring.md`."""
    named = re.findall(r"`((?:docs|examples|benchmarks)/[\w/]+\.(?:md|py))`", page.read_text())

    if page.name != "CHANGELOG.md" and "decisions" not in page.parts:
        assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_link_elsewhere_leads_to_somebody_known() -> None:
    found = sorted({link for page in pages() for link in links(page) if urlsplit(link).scheme in ("http", "https")})
    print(*found, sep="\n")

    assert {urlsplit(link).hostname for link in found} <= ELSEWHERE
    assert all(link.startswith("https://") for link in found)
