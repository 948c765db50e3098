"""Imports and launchers that would certainly end a script: modules of usual packages that nothing installs."""

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate

from trainmaster.client.submission.pack import Packed
from trainmaster.client.submission.project.dependencies import Dependencies
from trainmaster.client.submission.project.root import file_of_module, import_folders
from trainmaster.client.terminal import relative_to_cwd
from trainmaster.orchestrator.core.completion.error_repair import PACKAGES
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.resources import ROOT

_USUAL = {
    **PACKAGES,
    **{name: name for name in (
        "accelerate", "catboost", "datasets", "diffusers", "fastai", "flax", "gcsfs", "jax", "joblib", "lightgbm", "lightning",
        "matplotlib", "mlflow", "nltk", "optuna", "pandas", "peft", "polars", "safetensors", "scipy", "seaborn", "spacy",
        "statsmodels", "timm", "torch", "torchaudio", "torchvision", "transformers", "wandb", "xgboost",
    )},
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.storage": "google-cloud-storage",
    "hydra": "hydra-core",
    "pytorch_lightning": "pytorch-lightning",
}  # fmt: skip
"""Packages by the module that they install. Of other modules only the image knows whether it has them."""
_LAUNCHERS = {"torchrun": "torch", "accelerate": "accelerate"}


def certain_ends(packed: Packed, needs: Dependencies, named: Mapping[str, object]) -> Iterator[Fault]:
    """The launcher, and each import, that nothing in the shipped trainer's image and the archive satisfies.

    Follows the project's own modules, and reads only the statements of a module itself, which certainly run. `named` is
    the request's script.

    Raises:
        SyntaxError: one of these modules does not compile; `filename` says which.
    """
    lock = (ROOT / "trainer" / "requirements-cpu.txt").read_text(encoding="utf-8")
    has = {*needs.requirements, *re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==", lock)}
    listed_in = needs.source or "requirements.txt beside the script"

    def lacks(package: str, key: str, what: str, source: str = "") -> Fault:
        problem = f"{what}, which neither the image nor {listed_in} has"
        return Fault(at=(key,), problem=problem, source=source, repair=f"add {package} to {listed_in}")

    package = _LAUNCHERS.get(str(named.get("launcher")), "")
    if package and needs.is_whole and package not in has:
        yield lacks(package, "launcher", f"is of {package}")
    key, root = "file" if "file" in named else "module", packed.folder
    folders = [packed.script.parent, *import_folders(root)]
    waiting, seen = [packed.script], {packed.script}
    while waiting:
        file = waiting.pop()
        for statement in ast.parse(file.read_bytes(), str(file)).body:
            source = f"{relative_to_cwd(file)}:{statement.lineno}"
            for names, level in _imported_names(statement):
                places = [file.parents[level - 1]] if level else folders
                own = [path for name in names if (path := file_of_module(name, places)) is not None]
                waiting += [path for path in own if path not in seen]
                seen.update(own)
                package = next((_USUAL[name] for name in names if name in _USUAL), "")
                is_folder = any((folder / names[0]).is_dir() for folder in folders)
                inside = [path.relative_to(root).as_posix() for path in own if path.is_relative_to(root)]
                if left_out := [name for name in inside if name not in packed.files]:
                    problem = f"imports {names[-1]}, and {left_out[0]} is left out by .gitignore"
                    yield Fault(at=(key,), problem=problem, source=source, repair="remove its line there")
                elif package and needs.is_whole and package not in has and not (level or own or is_folder):
                    yield lacks(package, key, f"imports {names[0]}", source)


def _imported_names(statement: ast.stmt) -> Iterator[tuple[list[str], int]]:
    """For each import of a statement the modules that it runs, from the outermost, and its level, 0 for absolute ones."""
    above, level = "", 0
    if isinstance(statement, ast.ImportFrom):
        above, level = f"{statement.module}." if statement.module else "", statement.level
    for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
        yield [*accumulate(f"{above}{alias.name}".split("."), "{}.{}".format)], level
