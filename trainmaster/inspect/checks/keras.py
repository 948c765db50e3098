"""Keras 3 cannot `fit` under a strategy of several workers; Keras 2 can.

Found by running them (TensorFlow 2.21, Keras 3.15): `fit` fails under MultiWorkerMirroredStrategy with
"unsupported … PerReplica", under ParameterServerStrategy with a ValueError. TensorFlow reads
TF_USE_LEGACY_KERAS when it is imported, and once more when `tf.keras` is first used: between the two
`tf.keras` follows the variable, and what is imported from `tensorflow.keras` does not.
"""

import ast

from trainmaster.inspect.checks.examined import Call, Check, Examined
from trainmaster.inspect.finding import Finding, Level, Location, Subject
from trainmaster.inspect.source.guards import guards_of
from trainmaster.inspect.source.order import Step

VARIABLE = "TF_USE_LEGACY_KERAS"
TRUE = {"1", "true", "True"}
REPAIR = (
    f'Set os.environ["{VARIABLE}"] = "1" above the first import of tensorflow, and install tf_keras; '
    f"or write your own training loop."
)


def check(examined: Examined) -> Check:
    strategies = [*examined.multi_worker, *examined.parameter_server]
    fits = list(examined.on_models("fit"))
    if not strategies or not fits:
        return
    version = examined.surroundings.tensorflow
    if version is not None and examined.surroundings.has_keras_2:
        yield Subject.KERAS.fine(
            f"TensorFlow {version[0]}.{version[1]} has Keras 2, which trains on several workers",
        )
        return
    uses = _keras_used(examined)
    if uses == {"tf_keras"}:
        yield Subject.KERAS.fine("The program uses tf_keras, which can train on several workers")
    elif "tensorflow.keras" in uses:
        yield from _of_tf_keras(examined, fits)
    elif "keras" in uses:
        yield _keras_3(examined, fits, f"`import keras` is Keras 3, whatever {VARIABLE} says")
    else:
        yield Subject.KERAS.unknown("which Keras version builds the model that is trained on several workers")


def is_keras_3(examined: Examined) -> bool:
    """Whether the program saves with Keras 3, as far as the source and the image show."""
    uses = _keras_used(examined)
    if examined.surroundings.has_keras_2 or not uses or "tf_keras" in uses:
        return False
    if "tensorflow.keras" in uses:
        return examined.variables.get(VARIABLE) not in TRUE and not any(map(_sets, examined.steps))
    return True


def _keras_used(examined: Examined) -> set[str]:
    named = (module.dotted(node) for module, node in examined.program.nodes())
    names = {*examined.program.imported, *(name for name in named if name is not None)}
    packages = ("tensorflow.keras", "tf_keras", "keras")
    return {package for package in packages for name in names if f"{name}.".startswith(f"{package}.")}


def _of_tf_keras(examined: Examined, fits: list[Call]) -> Check:
    given = examined.variables.get(VARIABLE)
    if given in TRUE:
        yield Subject.KERAS.fine(f"{VARIABLE}={given} is set by the image or the request")
        return
    settings = [(number, step) for number, step in enumerate(examined.steps) if _sets(step)]
    imports = [number for number, step in enumerate(examined.steps) if _imports_tensorflow(step)]
    if not settings:
        yield _keras_3(examined, fits, f"{VARIABLE} is never set, so tf.keras is Keras 3")
        return
    number, step = settings[0]
    place = step.module.place(step.node)
    first = imports[0] if imports else len(examined.steps)
    if number > first:
        yield _too_late(examined, place, examined.steps[first])
    elif step.is_certain:
        yield Subject.KERAS.fine(f"{VARIABLE} is set before tensorflow is imported", place)
    else:
        yield Subject.KERAS.unknown(f"whether {VARIABLE} is always set before tensorflow is imported", place)


def _keras_3(examined: Examined, fits: list[Call], why: str) -> Finding:
    module, fit = fits[0]
    has_loop = any(
        module.dotted(call.func) == "tensorflow.GradientTape" for module, call in examined.program.calls()
    )
    if has_loop and any(guards_of(module, fit)):
        return Subject.KERAS.unknown(
            f"whether `fit` or the program's own loop trains on several workers; {why}",
            module.place(fit),
        )
    return Subject.KERAS.fault(
        level=examined.harm(),
        found=f"`fit` under a strategy of several workers with Keras 3: {why}",
        place=module.place(fit),
        cost="All replicas start, load data and fail at the first step; you pay for the machines until then.",
        repair=REPAIR,
    )


def _too_late(examined: Examined, place: Location, imported: Step) -> Finding:
    from_keras = any(
        isinstance(step.node, ast.ImportFrom) and step.module.origin(step.node).startswith("tensorflow.keras")
        for step in examined.steps
    )
    return Subject.KERAS.fault(
        level=examined.harm() if from_keras else Level.WARNING,
        found=f"{VARIABLE} is set after tensorflow was imported at {imported.module.place(imported.node)}",
        place=place,
        cost="What is imported from `tensorflow.keras` stays Keras 3, whose `fit` fails on several workers."
        if from_keras
        else "This works only if nothing uses tf.keras, or imports from `tensorflow.keras`, before this line.",
        repair=REPAIR,
    )


def _imports_tensorflow(step: Step) -> bool:
    return any(f"{name}.".startswith("tensorflow.") for name in step.module.imported_by(step.node))


def _sets(step: Step) -> bool:
    """Whether this step sets the variable to something that counts as true."""
    pairs: list[tuple[ast.expr | None, ast.expr]]
    match step.node:
        case ast.Assign(targets=[ast.Subscript(value=mapping, slice=name)], value=value):
            pairs = [(name, value)]
        case ast.AugAssign(target=mapping, value=ast.Dict(keys=keys, values=values)):
            pairs = [*zip(keys, values, strict=True)]
        case ast.Call(
            func=ast.Attribute(value=mapping, attr="setdefault" | "__setitem__"), args=[name, value]
        ):
            pairs = [(name, value)]
        case ast.Call(func=ast.Attribute(value=mapping, attr="update"), args=given, keywords=named):
            dicts = [each for each in given if isinstance(each, ast.Dict)]
            pairs = [pair for each in dicts for pair in zip(each.keys, each.values, strict=True)]
            pairs += [(ast.Constant(value=each.arg), each.value) for each in named]
        case _:
            return False
    return step.module.dotted(mapping) == "os.environ" and any(
        isinstance(name, ast.Constant)
        and name.value == VARIABLE
        and isinstance(value, ast.Constant)
        and str(value.value) in TRUE
        for name, value in pairs
    )
