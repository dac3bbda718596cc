"""The real server on another database at the same address: it gets what was meant for the first one when told so."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import noisescale
from as_owner import execute
from noisescale import commands
from noisescale.transport.upload.left_behind import stream_folders
from served_app import TOKEN, free_port, served_app

pytestmark = pytest.mark.processes


def num_runs(url: str) -> int:
    return len(httpx.get(f"{url}/api/v1/runs", headers={"Authorization": f"Bearer {TOKEN}"}).json()["runs"])


async def test_records_of_the_first_database_go_to_the_second_when_their_folder_is_named(
    new_database: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NOISESCALE_API_KEY", TOKEN)
    port, first, second = free_port(), new_database(), new_database()
    # databases of tests are copies of one template
    await execute(second, "UPDATE epoch SET database_id = gen_random_uuid()")
    with served_app(first, port=port) as url:
        run = noisescale.init(project="demo", delivery=noisescale.Delivery(url=url))
        run.log_metrics(1, loss=0.5)
        run.finish()
        assert num_runs(url) == 1
    [folder] = stream_folders(tmp_path)
    folder.acknowledge(1, None)  # as where the job was cut off from its server after the first record

    with served_app(second, port=port) as url:
        unasked = commands.main(["sync", "--url", url]), num_runs(url)
        said = capsys.readouterr().out
        asked = commands.main(["sync", str(folder.path), "--url", url]), num_runs(url)

    assert (unasked, asked) == ((1, 0), (0, 1))
    assert f"another database is behind {url} now than the one that has their first records" in said
