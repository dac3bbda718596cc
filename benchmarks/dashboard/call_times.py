"""How long the recorded calls of the pages take, one after the other, round by round."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from harness import AS_LOCAL_USER
from recorded_calls import Call

JSON = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}


@dataclass(frozen=True, slots=True)
class Times:
    """Of one kind of call of one page: seconds of each request, and the size of the last answer, compressed."""

    page: str
    name: str
    seconds: tuple[float, ...]
    num_bytes: int


def measure(url: str, calls: Sequence[Call], repeats: int) -> list[Times]:
    """The times of every kind of call, after one round that warms up.

    Kinds are taken in turn, so that a change of the machine's speed hits all; a kind recorded with several ids and
    values goes through them.

    Raises:
        RuntimeError: Where a call fails, which would be quick.
    """
    kinds: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        kinds[call.page, call.name].append(call)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    sizes: dict[tuple[str, str], int] = {}
    with httpx.Client(base_url=url, timeout=60, headers=AS_LOCAL_USER | JSON) as client:
        for number in range(repeats + 1):
            for kind, same in kinds.items():
                taken, sizes[kind] = _ask(client, same[number % len(same)])
                if number:
                    seconds[kind].append(taken)
    return [Times(page, name, tuple(seconds[page, name]), sizes[page, name]) for page, name in kinds]


def _ask(client: httpx.Client, call: Call) -> tuple[float, int]:
    start = time.perf_counter()
    answer = client.get(call.path) if call.body is None else client.post(call.path, content=call.body)
    taken = time.perf_counter() - start
    if answer.is_error:
        raise RuntimeError(f"{call.page}, {call.name}: {answer.status_code} {answer.text[:300]} to {call.body}")
    return taken, answer.num_bytes_downloaded
