"""`make demo`: serve, train four real runs that log into the server, and keep serving until Ctrl-C.

With NOISESCALE_URL set, or a server of this user already running, the runs go there and no server is started.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from demo import characters, digits
from demo.train import PLANS, Plan, train
from noisescale.config import Config

TASKS = {"digits": digits.make_task, "characters": characters.make_task}
START_TIMEOUT_SECONDS = 180.0
console = Console()


def is_ready(url: str) -> bool:
    """Whether a noisescale server answers there."""
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


@contextmanager
def server(url: str) -> Iterator[subprocess.Popen[bytes] | None]:
    """A server at that address: the one that answers there, else one of our own that ends with us."""
    if is_ready(url):
        yield None
        return
    command = [str(Path(sys.executable).with_name("noisescale")), "up"]
    process = subprocess.Popen(command)
    try:
        wait_until_ready(url, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers.

    Raises:
        SystemExit: If it ends or does not answer in time.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not is_ready(url):
        if process.poll() is not None:
            raise SystemExit("The server did not start; its message is above.")
        if time.monotonic() > deadline:
            raise SystemExit(f"The server did not answer at {url} within {START_TIMEOUT_SECONDS:.0f} s.")
        time.sleep(0.2)


def link(url: str) -> str:
    """What opens the dashboard in a browser: with the key of this start, where it is a server of this user."""
    key = Config.from_env(url=url).api_key
    return url if key is None else f"{url}/login?token={key}"


def run_all(plans: tuple[Plan, ...]) -> None:
    """Train every plan, one after the other, with a progress bar each."""
    torch.set_num_threads(1)
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bars = {plan: progress.add_task(plan.name, total=plan.steps, loss=float("nan")) for plan in plans}
        for plan in plans:
            train(TASKS[plan.task](), plan, partial(show, progress, bars[plan]))


def show(progress: Progress, bar: TaskID, step: int, loss: float) -> None:
    """Move a bar to the step just finished."""
    progress.update(bar, completed=step + 1, loss=loss)


def main() -> None:
    """Entry of `make demo`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="end after training instead of serving on")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply every run's number of steps")
    arguments = parser.parse_args()
    os.environ.setdefault("NOISESCALE_GROUP_SECONDS", "1")
    plans = tuple(plan.scaled(arguments.scale) for plan in PLANS)
    url = f"http://{os.environ.get('NOISESCALE_HOST', '127.0.0.1')}:{os.environ.get('NOISESCALE_PORT', '8321')}"
    url = os.environ["NOISESCALE_URL"] = os.environ.get("NOISESCALE_URL") or url
    with server(url) as process:
        # a link that is broken at the width of the terminal cannot be copied
        console.print(
            f"\nDashboard: [bold]{link(url)}[/bold]   four runs appear there while they train\n", soft_wrap=True
        )
        run_all(plans)
        console.print(f"\nDone. The runs stay at [bold]{link(url)}[/bold]", soft_wrap=True)
        if process is not None and not arguments.once:
            console.print("Serving until Ctrl-C.")
            process.wait()


def end(*_: object) -> None:
    """Leave as after Ctrl-C, so that a server of ours ends too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    try:
        main()
    except KeyboardInterrupt:
        console.print("\nStopped; the data are kept.")
