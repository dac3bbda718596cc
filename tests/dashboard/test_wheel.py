"""The dashboard's wheel carries what the browser loads, and the licences of what we did not make."""

import zipfile

import pytest

import wheels

pytestmark = pytest.mark.processes


def test_the_wheel_holds_fonts_scripts_styles_and_licences(tmp_path):
    with zipfile.ZipFile(wheels.build("dashboard", tmp_path)) as wheel:
        names = wheel.namelist()

    source = wheels.ROOT / "dashboard" / "src"
    assets = {
        str(path.relative_to(source)) for path in source.glob("noisescale_dashboard/assets/**/*") if path.is_file()
    }
    assert assets - set(names) == set()
    assert "noisescale_dashboard/report/report.css" in names
    assert {"OFL.txt", "LUCIDE-LICENSE.txt", "PLOTLY-LICENSE.txt"} <= {name.rsplit("/")[-1] for name in names}
