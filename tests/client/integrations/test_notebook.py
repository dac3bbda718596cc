"""The example notebook runs as it is, from its first cell to its last, and the run and its advice show themselves.

nbformat is imported by what uses it: it builds the grammar of addresses, a second that each process would pay.
"""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[3] / "examples" / "noise_scale.ipynb"
pytestmark = [pytest.mark.processes, pytest.mark.thorough]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUM_STEPS", "120")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("NOISESCALE_DIR", str(folder))
        patch.setenv("IPYTHONDIR", str(folder))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def shown_by(notebook, code):
    """What the last line of a cell shows."""
    (cell,) = [cell for cell in notebook.cells if cell.source == code]
    (shown,) = [output.data for output in cell.outputs if output.output_type == "execute_result"]
    return shown


@pytest.mark.slow
def test_it_is_a_valid_notebook_without_outputs_of_its_own():
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)

    nbformat.validate(notebook)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []


@pytest.mark.slow
def test_the_run_shows_itself(executed):
    shown = shown_by(executed, "run")

    assert "notebook/products · step 119" in shown["text/html"]
    assert "<svg" in shown["text/html"]
    assert shown["text/plain"].startswith("<noisescale.Run notebook/products ")


@pytest.mark.slow
def test_the_recommendation_shows_itself(executed):
    shown = shown_by(executed, "run.recommendation(examples_per_step=500)")

    assert "<svg" in shown["text/html"]
    assert "All of it" in shown["text/html"]


@pytest.mark.slow
def test_no_cell_warns_of_anything(executed):
    streams = [output.text for cell in executed.cells for output in cell.get("outputs", []) if "text" in output]

    assert not [text for text in streams if "Warning" in text or "Traceback" in text]
