"""Small models are measured in another way than large ones; tests that depend on it see both."""

import pytest

from noisescale.transport.spool import held_write


@pytest.fixture
def at_once(monkeypatch):
    """Gradients are reduced during the backward, as those of a large model are, however small the model is."""
    monkeypatch.setattr("noisescale.capture.small_batches.gradient_rows.MAX_ELEMENTS", 0)


@pytest.fixture(params=["kept", "at once"])
def either_way(request):
    """Once as a small model, once as a large one."""
    if request.param == "at once":
        request.getfixturevalue("at_once")


@pytest.fixture(autouse=True)
def disks_are_faked_by_os(request, monkeypatch):
    """Tests of the spool put a full or slow disk in the place of `os`; the quicker call of C would not notice."""
    if "spool" in request.path.parts:
        monkeypatch.setattr(held_write, "write", None)
