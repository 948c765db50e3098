"""Service libraries are imported by the first call that needs them, one at a time.

An instance's first events come in several threads at once. Without a lock, a mixed burst on a new instance
was seen to leave `google.cloud.aiplatform_v1` half initialised, and every later submission of that process
failed with an ImportError. The exact interleaving is not known; with the lock it was not seen again.
"""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from typing import Any

IMPORTING = threading.RLock()
"""Held around every import of a service library; held for moments only once they are loaded."""

VERTEX_CLIENT = "google.cloud.aiplatform_v1"


def import_parts_of(package: str) -> None:
    """Let parts of a package be imported without the rest, which its `__init__` would load.

    That of `google.cloud.aiplatform_v1` loads the clients of all its services: three times the work of the one that is
    needed. It still runs as soon as anyone asks the package for a name that is no module in it. Does nothing where the
    package is imported already. The caller holds IMPORTING.

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
        with IMPORTING:
            if vars(module).pop("__getattr__", None) is not None:
                loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load_all_for
    sys.modules[package] = module
    parent, _, child = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
