"""The workloads that `--workload` names: modules that define WORKLOAD, of this package or of the user's own.

Those of this package import TensorFlow only when a model is built, so that flags are checked at once.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

from trainer.faults import Unusable, suggestion_for
from trainer.settings.setting import Setting
from trainer.settings.settings import SETTINGS
from trainer.workload import Workload


def workload_names() -> list[str]:
    """The name of every workload of this package, sorted; nothing is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def workload_named(name: str) -> Workload:
    """The WORKLOAD of the module `name`: of this package, or with a dot, of the working directory or an installed package.

    Raises:
        Unusable: there is no such module, it cannot be imported, or its WORKLOAD is none that can be used.
    """
    if name not in workload_names() and not ("." in name and all(name.split("."))):
        raise Unusable(
            f"Unknown workload {name!r}; expected one of {', '.join(workload_names())}, or your own as my_package.module."
            f"{suggestion_for(name, workload_names())}"
        )
    module = name if "." in name else f"{__name__}.{name}"
    workload = getattr(_import_module(module), "WORKLOAD", None)
    if not isinstance(workload, Workload):
        kind = "no WORKLOAD" if workload is None else f"a {type(workload).__name__} as WORKLOAD"
        raise Unusable(
            f"--workload={name}: the module {module} has {kind}; expected a trainer.workload.Workload, or what "
            f"trainer.images.classification.image_classification returns."
        )
    if faults := _workload_faults(workload, name):
        raise Unusable(*faults)
    return workload


def _import_module(module: str) -> object:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever the user's module does
        why = f"importing {module} failed ({type(error).__name__}: {error}). `python -c 'import {module}'` shows where"
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            why = (
                f"there is no module {error.name} in {here} or among the installed packages. Start in the folder that "
                f"has it, or install its package"
            )
        raise Unusable(f"--workload={module}: {why}.") from error


def _workload_faults(workload: Workload, name: str) -> list[str]:
    return [
        f"--workload={name} declares the flag {flag!r}: a name must be a Python identifier and differ from the names "
        f"of all other flags."
        for flag in workload.flags
        if flag in {*SETTINGS, "workload"} or not flag.isidentifier()
    ] + [
        f"--workload={name} has a default for {default!r}, which is not a common setting.{suggestion_for(default, SETTINGS)} "
        f"Its own flags' defaults belong into their declarations."
        for default in workload.defaults
        if default not in SETTINGS
    ]


def all_flags() -> dict[str, Setting]:
    """The flags of all workloads of this package. Imports all of them."""
    return {
        flag: setting for name in workload_names() for flag, setting in workload_named(name).flags.items()
    }
