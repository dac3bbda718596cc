"""The port of the loopback address that answers /metrics without a key."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from app_in_process import running_app
from served_app import free_port
from stored_runs import resolved, store_run


async def test_this_machine_reads_the_same_text_without_a_key(new_database: Callable[[], str]) -> None:
    port = free_port()
    async with running_app(new_database(), metrics_port=port) as app, httpx.AsyncClient() as client:
        run_id = await store_run(app, **resolved())

        text = await client.get(f"http://127.0.0.1:{port}/metrics")
        openmetrics = await client.get(
            f"http://localhost:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )

    assert f'noisescale_run_noise_scale_examples{{run="{run_id}"}} 500.0' in text.text
    assert openmetrics.text.endswith("# EOF\n")


async def test_nothing_else_is_answered_there(
    new_database: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    async with running_app(new_database(), metrics_port=port), httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}"
        statuses = [
            (await client.get(f"{url}/api/v1/runs")).status_code,
            (await client.post(f"{url}/metrics")).status_code,
            (await client.get(f"{url}/metrics", headers={"Host": f"attacker.example:{port}"})).status_code,
        ]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"no request\r\n\r\n")
        answered = await reader.read()
        writer.close()
        # more headers than any client has, and one that is longer than a line may be
        for head in (b"x: y\r\n" * 200, b"x: " + b"y" * 60_000 + b"\r\n\xff: \xff\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.1\r\n" + head + b"\r\n")
            assert await reader.read() in (b"", answered)
            writer.close()

    assert not [one for one in caplog.records if one.name == "asyncio"]
    assert statuses == [404, 404, 403]
    assert answered.startswith(b"HTTP/1.1 403")


async def test_a_second_process_goes_on_without_the_port(
    new_database: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    port, database = free_port(), new_database()
    twice = (running_app(database, metrics_port=port) for _ in range(2))
    async with next(twice), next(twice), httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{port}/metrics")).status_code == 200

    assert f"not served on port {port} by this process" in caplog.text
