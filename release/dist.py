"""`make dist`: build all distributions, install them elsewhere, use them as a stranger would, and say what they hold.

`--upgrade-from COMMIT` begins with the data of that commit's own server, and loses no row of it.
"""

import argparse
import re
import tempfile
import time
from pathlib import Path

import archives
import sbom
import upgrade
from installed import Environment, first_minutes


def version() -> str:
    """The version of all distributions, from its one place."""
    text = (archives.ROOT / "client/src/noisescale/version.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.M)
    assert found is not None, "the file holds it"
    return found[1]


def main() -> None:
    """Build, try and list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=archives.ROOT / "dist", help="where the archives go; emptied first"
    )
    parser.add_argument("--upgrade-from", metavar="COMMIT", help="try an upgrade of this commit's data, too")
    parser.add_argument("--only-build", action="store_true", help="archives and their hashes alone")
    arguments = parser.parse_args()
    began = time.monotonic()
    built = archives.build(arguments.folder)
    print(f"{len(built)} archives of {version()}, twice the same bytes: {time.monotonic() - began:.1f} s", flush=True)
    if not arguments.only_build:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # the embedded database runs as nobody where this is root
            _try(Path(folder), arguments.folder, arguments.upgrade_from)
    archives.write_sums(arguments.folder)
    print(f"hashes: {arguments.folder / archives.SUMS}")


def _try(folder: Path, target: Path, commit: str | None) -> None:
    environment = Environment(folder)
    wheels = sorted(target.glob("*.whl"))
    if commit is not None:
        before, runs = upgrade.fill(environment, commit)
        environment.install(wheels)
        environment.run("noisescale", "migrate")
        # before a server judges the runs anew
        missing = upgrade.lost(before, environment.rows())
        assert not missing, "\n".join(missing)
        upgrade.read_back(environment, runs)
        print(f"upgraded from {commit}: all of its {sum(map(len, before.values()))} rows are there", flush=True)
    else:
        environment.install(wheels)
    num_components = sbom.write(environment.python, target, version())
    print(f"{sbom.NAME}: {num_components} components, valid by its schema", flush=True)
    for line in first_minutes(environment):
        print(line, flush=True)


if __name__ == "__main__":
    main()
