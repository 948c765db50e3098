"""A script that imports a package which the trainer's image lacks, and has no requirements.txt.

Only usual packages are judged, and only imports that every run executes: an image that was built from other
requirements has more, and the finding is a warning.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Level, Location, Subject
from trainmaster.inspect.source.module import Module
from trainmaster.inspect.source.program import Program
from trainmaster.inspect.source.tree import KNOWN
from trainmaster.orchestrator.core.completion.error_repair import PACKAGES
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.script import REQUIREMENTS
from trainmaster.orchestrator.core.requests.spec import Script
from trainmaster.resources import ROOT

_GOOGLE = ("aiplatform", "bigquery", "logging", "storage")
_MORE = frozenset(
    {"accelerate", "catboost", "gensim", "imageio", "nltk", "numba", "onnx", "onnxruntime", "optuna", "plotly",
     "polars", "sentencepiece", "spacy", "statsmodels", "timm", "tokenizers", "torchmetrics"}
)  # fmt: skip
USUAL: Mapping[str, str] = {
    **{name: PACKAGES.get(name, name.replace("_", "-"))
       for name in (KNOWN | PACKAGES.keys() | _MORE) - sys.stdlib_module_names - {"google", "cloudml_hypertune"}},
    **{f"google.cloud.{name}": f"google-cloud-{name}" for name in _GOOGLE},
}  # fmt: skip
"""PyPI packages by the module that they install."""
_TRAINER = re.compile(r"(?:.*/trainmaster/trainer(?:[:@].*)?)?")
"""The images of scripts that name none; empty in a request that no policy has completed."""
_OTHER_MEANS = ("Dockerfile", "pyproject.toml", "setup.py", "environment.yml", "Pipfile")
"""Files by which a program is installed that may not run as a script."""


def check(examined: Examined) -> Check:
    program = examined.program
    if len(program.entries) != 1 or not _may_lack(examined, program.entries[0].path.parent):
        return
    found: dict[str, Location] = {}
    for name, place in _missing(program):
        found.setdefault(name, place)
    if not found:
        return
    names = [*found]
    packages = sorted({USUAL[name] for name in names})
    yield Subject.REQUIREMENTS.fault(
        found=f"The script imports {listed(names)}, which the trainer's image lacks, and has no {REQUIREMENTS}",
        place=found[names[0]],
        level=Level.WARNING,
        cost="In that image, the script ends with ModuleNotFoundError.",
        repair=f"Add {listed(packages)} to {REQUIREMENTS} beside the script, one a line.",
    )


def _may_lack(examined: Examined, folder: Path) -> bool:
    """Whether nothing but the trainer's image can have the packages: no file and no line of the program installs them."""
    request, surroundings = examined.request, examined.surroundings
    if "PYTHONPATH" in examined.variables:
        return False
    levels = 1
    if request is None:
        if surroundings.dockerfile or any((folder / name).exists() for name in _OTHER_MEANS):
            return False
    elif isinstance(request.program, Script) and _TRAINER.fullmatch(request.program.image):
        levels = request.program.file.count(
            "/"
        )  # the archive's root, where requirements.txt is, may be above
    else:
        return False
    if any((each / REQUIREMENTS).exists() for each in (folder, *folder.parents[:levels])):
        return False
    return not any(
        isinstance(node, ast.Attribute | ast.Name) and module.dotted(node) == "sys.path"
        for module, node in examined.program.nodes()
    ) and not any(re.search(r"\bpip3?\b", text) for text in examined.program.strings)


def _missing(program: Program) -> Iterator[tuple[str, Location]]:
    """Usual modules that are neither in the image nor beside the script, with the first import of each."""
    (entry,) = program.entries
    for module, node in _certain_imports(program, entry):
        for imported in sorted(module.imported_by(node)):
            name = next((each for each in (imported, imported.partition(".")[0]) if each in USUAL), None)
            if name and _canonical(USUAL[name]) not in _image() and not _is_own(program, entry, name):
                yield name, module.place(node)


def _certain_imports(program: Program, entry: Module) -> Iterator[tuple[Module, ast.stmt]]:
    """The imports at the top of the entry, and of the modules that these import: not in functions or under conditions."""
    waiting, seen = [entry], {entry.name}
    while waiting:
        module = waiting.pop(0)
        for node in module.tree.body:
            for name in module.imported_by(node):
                if name in program.modules and name not in seen:
                    seen.add(name)
                    waiting.append(program.modules[name])
            if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
                yield module, node


def _is_own(program: Program, entry: Module, name: str) -> bool:
    first = name.partition(".")[0]
    if any(each == first or each.startswith(f"{first}.") for each in program.modules):
        return True
    folder = entry.path.parent
    places = (folder, folder.parent, folder / "src")
    return any((place / first).exists() or any(place.glob(f"{first}.*")) for place in places)


@cache
def _image() -> frozenset[str]:
    """The packages of the trainer's image for CPUs; that for GPUs has the same, and NVIDIA's libraries."""
    text = (ROOT / "trainer" / "requirements-cpu.txt").read_text(encoding="utf-8")
    return frozenset(_canonical(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE))


def _canonical(package: str) -> str:
    """The name as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", package).lower()
