"""Names of a package that load their module on first use (PEP 562), and doors to a package that may not be installed.

The one place where a module is imported inside a function: `import noisescale` must cost a training job nothing, and
`log_norms` must work where torch is not installed.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import NoReturn

LAB = "noisescale_lab"
INSTALL_LAB = "in a checkout of noisescale, pip install ./client ./lab"
INSTALL_SERVER = "in a checkout of noisescale, pip install ./client ./server ./dashboard"


def exports(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: `__name__` of the package.
        modules: From each exported name to the module that defines it.
    """

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module.startswith(LAB) and importlib.util.find_spec(LAB) is None:
            return _door(f"{package}.{name}")
        return getattr(importlib.import_module(module), name)

    def names() -> list[str]:
        return sorted(modules)

    return load, names


def _door(name: str) -> Callable[..., NoReturn]:
    """A function that says how to get what stands behind it; a name that raised would break who only lists names."""

    def door(*arguments: object, **named: object) -> NoReturn:
        raise ModuleNotFoundError(
            f"{name}() is part of noisescale-lab, which is not installed: {INSTALL_LAB}", name=LAB
        )

    return door
