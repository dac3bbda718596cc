"""Starts a job of several gloo ranks once and runs many scenarios in it: importing torch is what takes time.

    results = run_on_ranks(2, scenarios, folder)     # name of the scenario -> what each rank returned

A scenario is a function of (rank, num_ranks). What goes wrong in it comes back as a text that starts with "Traceback".
"""

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from places import with_support

Scenario = Callable[[int, int], Any]


JOB_SECONDS = 150


def run_on_ranks(num_ranks: int, module: str, folder: Path) -> dict[str, list[Any]]:
    """Results of all scenarios, one for each rank.

    Args:
        num_ranks: Processes.
        module: File beside this one, with a mapping SCENARIOS.
        folder: For the rendezvous and the results.
    """
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), with_support()]),
        "OMP_NUM_THREADS": "1",
    }
    commands = [[sys.executable, __file__, module, str(rank), str(num_ranks), str(folder)] for rank in range(num_ranks)]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=JOB_SECONDS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * num_ranks, "\n".join(outputs)[-8000:]
    of_rank = [pickle.loads((folder / f"result-{rank}").read_bytes()) for rank in range(num_ranks)]
    return {name: [results[name] for results in of_rank] for name in of_rank[0]}


def run_scenarios(scenarios: Mapping[str, Scenario], rank: int, num_ranks: int, folder: Path) -> None:
    """Run them all on this rank and keep what they return."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'rendezvous'}",
        rank=rank,
        world_size=num_ranks,
        timeout=timedelta(seconds=30),
    )
    results = {}
    for name, scenario in scenarios.items():
        try:
            results[name] = scenario(rank, num_ranks)
        except Exception:
            results[name] = traceback.format_exc()
    (folder / f"result-{rank}").write_bytes(pickle.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    chosen, own_rank, of_ranks, where = sys.argv[1:]
    run_scenarios(__import__(chosen).SCENARIOS, int(own_rank), int(of_ranks), Path(where))
