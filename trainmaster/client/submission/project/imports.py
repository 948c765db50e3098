"""Imports that would certainly end a script: modules of usual packages that nothing installs."""

import ast
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from trainmaster.client.submission.project.dependencies import Dependencies
from trainmaster.client.submission.project.root import file_of_module, import_folders
from trainmaster.orchestrator.core.completion.error_repair import PACKAGES
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


def missing_imports(script: Path, root: Path, needs: Dependencies) -> Iterator[tuple[Path, int, str, str]]:
    """The file, line, module and package of each import that nothing in the shipped trainer's image satisfies.

    Follows the project's own modules, and reads only the statements of a module itself, which certainly run.

    Raises:
        SyntaxError: one of these modules does not compile; `filename` says which.
    """
    lock = (ROOT / "trainer" / "requirements-cpu.txt").read_text(encoding="utf-8")
    has = {*needs.wanted, *re.findall(r"(?m)^([a-z0-9][a-z0-9.-]*)==", lock)}
    folders = [script.parent, *import_folders(root)]
    waiting, seen = [script], {script}
    while waiting:
        file = waiting.pop()
        for statement in ast.parse(file.read_bytes(), str(file)).body:
            for names, level in _imported_names(statement):
                places = [file.parents[level - 1]] if level else folders
                own = [path for name in names if (path := file_of_module(name, places)) is not None]
                waiting += [path for path in own if path not in seen]
                seen.update(own)
                package = next((_USUAL[name] for name in names if name in _USUAL), "")
                is_folder = any((folder / names[0]).is_dir() for folder in folders)
                if package and needs.is_whole and package not in has and not (level or own or is_folder):
                    yield file, statement.lineno, names[0], package


def _imported_names(statement: ast.stmt) -> Iterator[tuple[list[str], int]]:
    """For each import of a statement the modules that it runs, from the outermost, and its level, 0 for absolute ones."""
    above, level = "", 0
    if isinstance(statement, ast.ImportFrom):
        above, level = f"{statement.module}." if statement.module else "", statement.level
    for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
        yield [*accumulate(f"{above}{alias.name}".split("."), "{}.{}".format)], level
