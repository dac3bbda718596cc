"""`make fuzz`: at least 20,000 requests of schemathesis against every operation, in rounds with a seed each.

Odd rounds ask with the key of one who may do everything, even ones with an admin key of one project.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import httpx
from results_file import Figure, write
from smoke import IS_SMOKE, size

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))

from fuzzed_api import fuzz
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrate
from served_app import TOKEN, served_app

REQUESTS = 20_000
EXAMPLES = size(20, 1)


def key_of_a_project(address: str) -> str:
    """An admin key that opens one project."""
    with httpx.Client(base_url=f"{address}/api/v1", headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        client.post("/runs", json={"project": "ours"}).raise_for_status()
        made = client.post("/keys", json={"name": "fuzz", "scope": "admin", "projects": ["ours"]})
        made.raise_for_status()
        return str(made.json()["key"])


def main() -> None:
    """Ask, say what is wrong, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=size(REQUESTS, 50))
    wanted = parser.parse_args().requests
    num_requests = num_failures = seed = 0
    # schemathesis leaves folders of its own where it is started
    with EmbeddedPostgres.throw_away() as postgres, tempfile.TemporaryDirectory() as folder:
        postgres.create_database("fuzz")
        migrate(postgres.url("fuzz"))
        with served_app(postgres.url("fuzz"), public_projects=True) as address:
            keys = (TOKEN, key_of_a_project(address))
            while num_requests < wanted:
                is_limited = seed % 2 == 1
                seed += 1
                found = fuzz(
                    address,
                    keys[is_limited],
                    examples=EXAMPLES,
                    seed=seed,
                    folder=Path(folder),
                    is_limited=is_limited,
                    with_sequences=not IS_SMOKE,
                    path=size(None, "/api/v1/projects"),
                )
                num_requests += found.num_requests
                num_failures += found.num_failures
                print(f"{num_requests} requests, {num_failures} failures", flush=True)
                if found.num_failures:
                    print(found.report)
    write(
        "fuzz",
        [Figure("requests", num_requests, "", f"at least {REQUESTS}"), Figure("failures", num_failures, "", "0")],
        command="make fuzz",
    )
    sys.exit(1 if num_failures else 0)


if __name__ == "__main__":
    main()
