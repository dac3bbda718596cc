"""Dashboard and API on one event loop: a callback that waits for the API must not stop the loop."""

import asyncio

import httpx
import pytest

from callback_values import VALUES
from dashboard_callbacks import Callbacks


@pytest.mark.thorough
async def test_every_callback_answers_in_one_process(address: str) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=20) as client:
        callbacks = await Callbacks.of(client)
        outputs = [d["output"].strip(".").split("...")[0] for d in callbacks.server_side()]

        answers = await asyncio.gather(*(callbacks.post(output, VALUES) for output in outputs))

    assert len(answers) == len(outputs) >= 6
    assert [output for output, answer in zip(outputs, answers, strict=True) if not answer] == []
