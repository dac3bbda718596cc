"""Every row of the requirements has a place where a person sees it, and the place is there."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from noisescale_dashboard.app import page_at
from noisescale_dashboard.serving.page_routes import names_a_page
from noisescale_dashboard.serving.settings import DashboardSettings

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs" / "places.md").read_text(), re.MULTILINE)
AN_ID = "00000000-0000-4000-8000-000000000001"


def test_the_table_has_each_of_the_67_rows_once():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 68))


@cache
def laid_out(path: str) -> str:
    assert names_a_page(path), path
    page = page_at(path, narrow=False, settings=DashboardSettings())
    return json.dumps(page, default=lambda part: part.to_plotly_json())


@cache
def commands() -> str:
    asked = [str(Path(sys.executable).with_name("noisescale")), "--help"]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "place"), [(number, place) for number, _, place in ROWS])
def test_a_place_is_there_when_it_is_opened(number: str, place: str):
    place = place.strip("`")

    if place.startswith("docs/"):
        assert len((ROOT / place).read_text()) > 500
    elif place.startswith("noisescale "):
        assert re.search(rf"^    {place.removeprefix('noisescale ')}\b", commands(), re.MULTILINE)
    else:
        address, _, mark = place.partition("#")
        path = re.sub(r"\{\w+\}", AN_ID, address.partition("?")[0])
        assert re.search(rf'"id": "{mark}(-title)?"', laid_out(path)), place
