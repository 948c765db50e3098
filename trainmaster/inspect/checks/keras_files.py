"""Keras 3 saves a model only to a file whose name ends in .keras: does the program give it one?

Found by running it (Keras 3.15): `save` to a folder raises ValueError, "Invalid filepath extension for saving"; to
gs://bucket/model.h5 it succeeds, and h5py makes a folder called `gs:` on the replica's own disk. Keras 2 writes a
SavedModel to a name without an extension.
"""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.checks.keras import is_keras_3
from trainmaster.inspect.checks.saving import OF_KERAS, Save, iter_saves
from trainmaster.inspect.finding import Subject
from trainmaster.inspect.source.module import Module, last_name
from trainmaster.inspect.source.origins import ENVIRONMENT, MAX_DEPTH
from trainmaster.inspect.source.variables import MADE_OF, comes_from, defaults_of, values_of

VARIABLE = "AIP_MODEL_DIR"
MOUNT = "/gcs"
KERAS, HDF5 = (".keras",), (".h5", ".hdf5")
DEFAULT = "model.keras"
COST = "The run fails after its training, and leaves no model."
COST_OF_HDF5 = "h5py writes to a folder called gs: on the machine, and the model is lost with it."


def check(examined: Examined) -> Check:
    if not is_keras_3(examined):
        return
    for save in iter_keras_saves(examined):
        if save.path is None or not comes_from(VARIABLE, examined.program, save.module, save.path):
            continue
        names = [*_endings(examined, save.module, save.path)]
        folder = next((name for name in names if not name.endswith((*KERAS, *HDF5))), None)
        hdf5 = next((name for name in names if name.endswith(HDF5)), None)
        if folder is not None:
            path = f"{VARIABLE} itself" if not folder else f"a path that ends in {folder!r}"
            found = f"`{save.shown}` is given {path}, and Keras 3 saves only to a file that ends in .keras"
            cost = COST
        elif hdf5 is not None and not any(MOUNT in text for text in examined.program.strings):
            found = f"`{save.shown}` writes HDF5, a plain file, and {VARIABLE} is a gs:// URI"
            cost = COST_OF_HDF5
        else:
            continue
        yield Subject.MODEL_DIR.fault(
            found=found, place=save.module.place(save.call), cost=cost, repair=repair_of(examined, save)
        )


def iter_keras_saves(examined: Examined) -> Iterator[Save]:
    """The calls that write a whole Keras model under a path whose ending chooses the format."""
    if examined.framework == "keras":
        yield from iter_saves(examined, ("save",), OF_KERAS)


def repair_of(examined: Examined, save: Save) -> str:
    """How this save of a Keras model puts it into AIP_MODEL_DIR, under the file name that it has now."""
    names = [] if save.path is None else [*_endings(examined, save.module, save.path)]
    named = PurePosixPath(next(filter(None, names), DEFAULT)).name or DEFAULT
    if not is_keras_3(examined) and not named.endswith(KERAS):
        return f'Save to os.environ["{VARIABLE}"].'
    suffix = PurePosixPath(named).suffix
    name = named if suffix in KERAS else f"{named.removesuffix(suffix) if suffix in HDF5 else named}.keras"
    return f'Save to os.path.join(os.environ["{VARIABLE}"], "{name}").'


def _endings(examined: Examined, module: Module, node: ast.expr, depth: int = 0) -> Iterator[str]:
    """What the path can end in, as far as the source shows it; empty of a variable of the environment."""
    if depth > MAX_DEPTH:
        return
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.Subscript(value=value) if module.dotted(value) in ENVIRONMENT:
            yield ""
        case ast.Call() if module.dotted(node.func) in ENVIRONMENT:
            yield ""
        case _:
            for home, each in _last_parts(examined, module, node):
                yield from _endings(examined, home, each, depth + 1)


def _last_parts(examined: Examined, module: Module, node: ast.expr) -> Iterator[tuple[Module, ast.expr]]:
    """What a text or path that is put together, or a name, has at its end."""
    match node:
        case (
            ast.BinOp(right=value, op=ast.Add() | ast.Div())
            | ast.FormattedValue(value=value)
            | ast.JoinedStr(values=[*_, value])
            | ast.NamedExpr(value=value)
        ):
            yield module, value
        case ast.BoolOp(values=values):
            yield from ((module, value) for value in values)
        case ast.IfExp(body=body, orelse=orelse):
            yield from ((module, body), (module, orelse))
        case ast.Call(args=[*_, value]) if (
            module.dotted(node.func) or last_name(node.func)
        ) in MADE_OF or last_name(node.func) == "joinpath":
            yield module, value
        case ast.Attribute(attr=flag) if module.dotted(node) is None:
            yield from defaults_of(examined.program, flag)
        case ast.Name():
            yield from values_of(examined.program, module, node)
