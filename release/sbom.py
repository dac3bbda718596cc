"""What an installation is made of, in CycloneDX, by the project's own tool, and held against its schema."""

import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

SCHEMA = SchemaVersion.V1_6
NAME = "noisescale.cdx.json"


class NotValid(Exception):
    """The list does not fit its schema, or lacks one of our distributions."""


def write(python: Path, target: Path, version: str) -> int:
    """How many components the list has; written as `noisescale.cdx.json`.

    Args:
        python: Interpreter of the environment in which everything is installed.
        target: Folder to write.
        version: Of the release.

    Raises:
        NotValid: If what was written does not fit the schema.
    """
    file = target / NAME
    options = ["--spec-version", "1.6", "--output-reproducible", "--output-format", "JSON", "--output-file", str(file)]
    command = [str(Path(sys.executable).with_name("cyclonedx-py")), "environment", *options, str(python)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    content = json.loads(file.read_text())
    content["metadata"]["component"] = {
        "type": "application",
        "bom-ref": "noisescale",
        "name": "noisescale",
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    for component in content["components"]:
        # installed from files of this machine, whose folder concerns nobody
        if component["name"].startswith("noisescale"):
            component.pop("externalReferences", None)
    file.write_text(json.dumps(content, indent=1) + "\n")
    check(file)
    return len(content["components"])


def check(file: Path) -> None:
    """Raise unless the list fits the schema of its version.

    Raises:
        NotValid: With what is wrong.
    """
    problem = make_schemabased_validator(OutputFormat.JSON, SCHEMA).validate_str(file.read_text())
    if problem is not None:
        raise NotValid(f"{file.name} is no CycloneDX {SCHEMA.to_version()}: {problem}")
