"""Names of a package that load their module on first use (PEP 562).

The one place where a module is imported inside a function: `import noisescale` must cost a training job nothing, and
`log_norms` must work where torch is not installed.
"""

import importlib
from collections.abc import Callable, Mapping


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
        return getattr(importlib.import_module(module), name)

    def names() -> list[str]:
        return sorted(modules)

    return load, names
