"""schemathesis against a running server: every operation of its OpenAPI, all checks, the operations in sequence too."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

CONFIG = Path(__file__).parents[1] / "fuzz" / "schemathesis.toml"


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What came of it.

    Attributes:
        num_requests: That were sent.
        num_failures: Answers that break the description, and 5xx.
        report: What schemathesis says, each failure with its curl command.
    """

    num_requests: int
    num_failures: int
    report: str


def fuzz(
    address: str,
    key: str,
    *,
    folder: Path,
    examples: int,
    with_sequences: bool = True,
    seed: int | None = None,
    path: str | None = None,
    is_limited: bool = False,
) -> Fuzzed:
    """What schemathesis finds with this key.

    Args:
        address: Of the server.
        key: An admin's.
        folder: Where schemathesis may leave its own files.
        examples: Generated requests an operation, beside those that its schema gives rise to.
        with_sequences: Whether operations are asked in sequence, too, which takes minutes.
        seed: Of the requests; None: another one each time.
        path: The one to ask; None: all.
        is_limited: The key does not open everything: 403 answers what is well-formed, too.
    """
    config = folder / CONFIG.name
    accepted = '["2xx"'
    config.write_text(CONFIG.read_text().replace(accepted, f"{accepted}, 403" if is_limited else accepted))
    options = ["--max-examples", f"{examples}"]
    options += [] if with_sequences else ["--phases", "coverage,fuzzing"]
    options += ["--seed", f"{seed}"] if seed is not None else []
    options += ["--include-path", path] if path else []
    described = folder / "openapi.json"
    described.write_bytes(
        httpx.get(f"{address}/openapi.json", headers={"Authorization": f"Bearer {key}"}, timeout=60).content
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", f"{config}", "run", f"{described}"),
            *("--url", address, "--request-timeout", "60"),
            *("--header", f"Authorization: Bearer {key}", "--no-color", "--continue-on-failure"),
            *("--generation-database", "none", *options),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    generated = re.search(r"([\d,]+) generated", done.stdout)
    failures = re.search(r"(\d+) unique failure", done.stdout)
    num_failures = int(failures[1]) if failures else int(done.returncode != 0)
    num_requests = int(generated[1].replace(",", "")) if generated else 0
    return Fuzzed(num_requests, num_failures, done.stdout + done.stderr)
