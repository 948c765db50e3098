"""Imports of service libraries: one at a time, and of a large package only the parts that are needed.

Measured on two shared cores, Python 3.11, google-cloud-aiplatform 2.7.0, best of five processes with compiled modules:
importing JobServiceClient with the whole package takes 3.7 s and 108 MiB, with these parts 1.1 s and 61 MiB. The plain
import of a submodule runs the package's `__init__` first, and so does `importlib.util.LazyLoader`, as soon as the import
of a submodule reads the package's `__path__`. An AuthorizedSession without this library takes 0.5 s and 39 MiB, but each
message, error and retry of the official client would have to be written again, and the local stack needs its messages.
"""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from typing import Any

VERTEX_CLIENT = ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types")
"""The first loads the clients of all services of Vertex AI, three times the work of the one that is needed; the second
all their messages, three times the work of those of jobs."""
IMPORTING = threading.RLock()
"""Held around every import of a service library; once they are loaded, only for moments.

An instance's first events arrive in several threads at once, and each imports what it needs with its first call. Without
a lock, a mixed burst on a new instance left `google.cloud.aiplatform_v1` half initialised, and every later submission of
that process failed with an ImportError. The exact interleaving is not known; with the lock it has not occurred again.
"""


def import_parts_of(*packages: str) -> None:
    """Let parts of packages be imported without the rest, which their `__init__` would load; outer packages first.

    An `__init__` still runs as soon as anyone asks its package for a name that is not one of its modules.
    Does nothing where the package is imported already.

    Raises:
        ModuleNotFoundError: there is no such package.
    """
    for package in packages:
        _import_parts_of(package)


def _import_parts_of(package: str) -> None:
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
