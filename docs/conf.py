"""How Sphinx builds the documentation: `make docs`."""

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings

HERE = Path(__file__).parent
OPENAPI = HERE / "reference" / "openapi.json"

project = "noisescale"
copyright = "the authors of noisescale"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # docstrings in Google's style
    "sphinxarg.ext",  # the command line from its own parser
    "sphinxcontrib.openapi",  # REST from the server's own description
    "sphinx_copybutton",
    "sphinx_llms_txt",  # llms.txt and llms-full.txt
]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # a page may begin below the first level

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # the signature has them
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "noisescale"
html_static_path = ["_static"]
html_show_sphinx = False
html_show_sourcelink = False

llms_txt_title = "noisescale"
llms_txt_summary = (
    "Measures the gradient noise scale inside training jobs and says which batch size and learning rate to train "
    "with, with odds."
)
llms_txt_exclude = ["decisions/*", "search", "genindex"]


def write_openapi(_app: Sphinx) -> None:
    """Write the server's description of its API; what may also be null is named by its type."""
    described = create_app(Settings(database_url="postgresql://nowhere/none")).openapi()
    OPENAPI.write_text(json.dumps(without_null(described)))


def without_null(schema: Any) -> Any:
    """The schema with `X or null` as X: the extension prints it as a set."""
    if isinstance(schema, list):
        return [without_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(kinds) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **kinds[0]}
    return {name: without_null(value) for name, value in schema.items()}


def link_pages(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make links of names such as `docs/measuring.md`: prose is read in the files and in terminals, too."""
    up = "../" * page.count("/")

    def link(found: re.Match[str]) -> str:
        target = HERE / found[1]
        title = re.search(r"^# (.+)$", target.read_text(), re.MULTILINE) if target.exists() else None
        return f"[{title[1].replace('`', '')}](<{up}{found[1]}>)" if title else found[0]

    source[0] = re.sub(r"`docs/([\w/-]+\.md)`", link, source[0])


def escape_bars(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Keep |G|² what it is: bars are substitutions in reStructuredText."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Connect what is ours; Sphinx calls it."""
    app.connect("builder-inited", write_openapi)
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", escape_bars)
