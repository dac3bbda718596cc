"""Real runs to look at: what their trainings sent, recorded by `examples/record_demo_data.py`."""

from pathlib import Path


def requests_file() -> Path:
    """JSON lines packed with xz: the provenance, then a request a line; entry point of `noisescale.demo_data`."""
    return Path(__file__).parent / "requests.jsonl.xz"
