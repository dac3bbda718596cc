"""What ships with the page: own files only, with their licences, versions that fit together."""

import re
from pathlib import Path

import plotly.offline

import noisescale_dashboard

ASSETS = Path(noisescale_dashboard.__file__).parent / "assets"


def test_the_browser_part_of_plotly_has_the_version_of_the_python_part() -> None:
    header = (ASSETS / "00-plotly-cartesian.min.js").read_text()[:200]

    assert f"v{plotly.offline.get_plotlyjs_version()}" in header


def test_font_icons_and_plotly_bring_their_licences() -> None:
    assert "SIL Open Font License" in (ASSETS / "fonts" / "OFL.txt").read_text()
    assert "ISC License" in (ASSETS / "LUCIDE-LICENSE.txt").read_text()
    assert "MIT" in (ASSETS / "PLOTLY-LICENSE.txt").read_text()


def test_our_own_files_name_no_other_server() -> None:
    own = [p for p in ASSETS.rglob("*") if p.suffix in (".css", ".js") and "plotly" not in p.name]

    for path in own:
        addresses = set(re.findall(r"https?:[^\s\"')]+", path.read_text()))
        assert not addresses, path


def test_every_icon_that_is_used_is_drawn() -> None:
    drawn = set(re.findall(r"\.i-([a-z]+)", (ASSETS / "20-icons.css").read_text()))
    python = "".join(p.read_text() for p in ASSETS.parent.rglob("*.py"))
    used = set(re.findall(r'\bicon\(\s*"([a-z]+)"', python)) | set(re.findall(r'icon_name="([a-z]+)"', python))

    assert used <= drawn
