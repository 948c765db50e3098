"""Functions for plain files take no gs:// URI: does the program give them AIP_MODEL_DIR as it is?

`open` fails, `os.makedirs` creates a folder called `gs:` on the replica's own disk. Vertex AI mounts the buckets below
/gcs. Source: https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system (read 2026-11-23).
"""

import ast
from collections.abc import Iterator

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Subject
from trainmaster.inspect.source.module import Module, argument, keyword
from trainmaster.inspect.source.variables import comes_from

VARIABLE = "AIP_MODEL_DIR"
MOUNT = "/gcs"
SCHEMES = {"gs", "gs:", "gs://"}
FUNCTIONS = {
    "joblib.dump": (("filename",), 1),
    "numpy.save": (("file",), 0),
    "numpy.savez": (("file",), 0),
    "numpy.savez_compressed": (("file",), 0),
    "os.makedirs": (("name",), 0),
    "os.mkdir": (("path",), 0),
    "safetensors.torch.save_file": (("filename",), 1),
    "shutil.copy": (("dst",), 1),
    "shutil.copy2": (("dst",), 1),
    "shutil.copyfile": (("dst",), 1),
    "shutil.copytree": (("dst",), 1),
    "shutil.move": (("dst",), 1),
    "torch.save": (("f",), 1),
}
"""The names and the position of the path that each function writes to."""
METHODS_OF_PATHS = {"mkdir", "touch", "write_bytes", "write_text"}
SAVE_PRETRAINED = "save_pretrained"
"""A method of Hugging Face's models and tokenizers, whose first argument is a local folder."""


def check(examined: Examined) -> Check:
    program = examined.program
    # A program that knows the mount, or looks at the scheme, most likely makes a path of the URI.
    if any(MOUNT in text or text in SCHEMES for text in program.strings):
        return
    found = sorted(
        (
            (module.place(call), call)
            for module, call in program.calls()
            if _writes_there(examined, module, call)
        ),
        key=lambda each: (each[0].path, each[0].line or 0),
    )
    if not found:
        return
    place, call = found[0]
    others = f", and {len(found) - 1} more calls do" if len(found) > 1 else ""
    yield Subject.MODEL_DIR.fault(
        found=f"`{ast.unparse(call.func)}` writes plain files, and {VARIABLE}, which it is given, is a gs:// URI{others}",
        place=place,
        cost="The call fails, or the model is written to a folder called gs: on the machine, which is lost with it.",
        repair=f'Write below /gcs, where the buckets are mounted: os.environ["{VARIABLE}"].replace("gs://", "/gcs/", 1). '
        "Make this folder first: os.makedirs(path, exist_ok=True).",
    )


def _writes_there(examined: Examined, module: Module, call: ast.Call) -> bool:
    return any(comes_from(VARIABLE, examined.program, module, path) for path in _paths(module, call))


def _paths(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    """What the call writes to, if it takes only paths of this machine."""
    name, path = module.dotted(call.func), None
    if name in FUNCTIONS:
        path = argument(call, *FUNCTIONS[name])
    elif name == "io.open" or (name is None and isinstance(call.func, ast.Name) and call.func.id == "open"):
        path = argument(call, ("file",), 0) if _is_written(call, 1) else None
    elif name is None and isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if method in METHODS_OF_PATHS or (method == "open" and _is_written(call, 0)):
            path = call.func.value
        elif method == SAVE_PRETRAINED:
            path = argument(call, ("save_directory",), 0)
    if path is not None:
        yield path


def _is_written(call: ast.Call, position: int) -> bool:
    """Whether the mode of `open` is one that writes."""
    mode = keyword(call, "mode") or (call.args[position] if len(call.args) > position else None)
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and not {*"wax+"}.isdisjoint(mode.value)
    )
