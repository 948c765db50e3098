"""A package of which only parts are imported: what its `__init__` loads beside them may take most of the time."""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from typing import Any

VERTEX_CLIENT = "google.cloud.aiplatform_v1"
_LOADING = threading.RLock()


def import_parts_of(package: str) -> None:
    """Let parts of a package be imported without the rest, which its `__init__` would load.

    That of `google.cloud.aiplatform_v1` loads the clients of all its services: three times the work of the one that is
    needed. It still runs as soon as anyone asks the package for a name that is no module in it. Does nothing where the
    package is imported already.

    Raises:
        ModuleNotFoundError: there is no such package.
    """
    if package in sys.modules:
        return
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No package named {package!r}", name=package)
    loader, module = spec.loader, module_from_spec(spec)

    def load_all_for(name: str) -> Any:  # Any: whatever the package exports
        is_special = name.startswith("__") and name != "__all__"
        if is_special or find_spec(f"{package}.{name}") is not None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        with _LOADING:
            if vars(module).pop("__getattr__", None) is not None:
                loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load_all_for
    sys.modules[package] = module
    parent, _, child = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
