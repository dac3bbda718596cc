"""Names of a package that load their module on first use (PEP 562), and doors to a package that may not be installed.

The one place where a module is imported inside a function: `import noisescale` must cost a training job nothing, and
`log_norms` must work where torch is not installed.
"""

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import NoReturn

LAB = "noisescale_lab"
INSTALL_LAB = "in a checkout of noisescale, pip install ./client ./lab"
INSTALL_IMPORTERS = "in a checkout of noisescale, pip install ./client ./importers"
INSTALL_SERVER = "in a checkout of noisescale, pip install ./client ./server ./dashboard"


def exports(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose stub says what it exports and from where.

    So each name stands once, where type checkers read it, too. As `lazy_loader.attach_stub`, without a dependency.

    Args:
        package: `__name__` of the package.
        file: Its `__file__`.
    """
    stub = f"{os.path.splitext(file)[0]}.pyi"
    loader = sys.modules[package].__spec__.loader  # type: ignore[union-attr]  # a package that is being imported has one
    tree = ast.parse(loader.get_data(stub))  # type: ignore[union-attr]  # files and zip files both give their data
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module is not None]
    modules = {str(alias.asname): str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module.startswith(LAB) and importlib.util.find_spec(LAB) is None:
            return _door(f"{package}.{name}")
        return getattr(importlib.import_module(module), name)

    def names() -> list[str]:
        return sorted(modules)

    return load, names, names()


def _door(name: str) -> Callable[..., NoReturn]:
    """A function that says how to get what stands behind it; a name that raised would break who only lists names."""

    def door(*arguments: object, **named: object) -> NoReturn:
        raise ModuleNotFoundError(
            f"{name}() is part of noisescale-lab, which is not installed: {INSTALL_LAB}", name=LAB
        )

    return door
