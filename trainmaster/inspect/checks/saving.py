"""Who saves: under MultiWorkerMirroredStrategy all replicas must, and only the chief's may end in the shared directory.

Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras, "Model saving and loading": saving
reads variables that all replicas aggregate; AIP_MODEL_DIR is one directory for all of them.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Finding, Subject
from trainmaster.inspect.source.guards import is_chief_alone, knows_role
from trainmaster.inspect.source.module import Module, argument
from trainmaster.inspect.source.origins import Origin, origin_of

METHODS = ("save", "save_weights", "export", "save_model")
OF_KERAS = {
    f"{package}.{name}"
    for package in ("tensorflow.keras", "tf_keras", "keras")
    for name in ("models.save_model", "saving.save_model")
}
FUNCTIONS = OF_KERAS | {"tensorflow.saved_model.save"}
PATH_NAMES = ("filepath", "export_dir", "path", "directory")


@dataclass(frozen=True, kw_only=True, eq=False)
class Save:
    """A call that writes a model; `path` is its destination, None if the call does not show it."""

    module: Module
    call: ast.Call
    path: ast.expr | None

    @property
    def shown(self) -> str:
        return ast.unparse(self.call.func)


def check(examined: Examined) -> Check:
    saves = list(iter_saves(examined))
    has_workers = examined.request is not None and examined.request.workers > 0
    if not saves or not (examined.multi_worker or has_workers):
        return
    alone = [save for save in saves if is_chief_alone(examined.program, save.module, save.call)]
    joint = [save for save in saves if save not in alone]
    if alone and not joint and examined.multi_worker:
        yield from _chief_alone(examined, alone)
    found = [finding for save in joint if (finding := _shared(examined, save)) is not None]
    yield from found
    if joint and not found:
        first = joint[0]
        yield Subject.SAVING.fine(
            f"`{first.shown}` is reached by every replica, and its path depends on the replica",
            first.module.place(first.call),
        )


def iter_saves(
    examined: Examined, methods: Sequence[str] = METHODS, functions: Collection[str] = FUNCTIONS
) -> Iterator[Save]:
    """The calls of these methods of models, and of these functions."""
    for module, call in examined.on_models(*methods):
        yield Save(module=module, call=call, path=argument(call, PATH_NAMES, 0))
    for module, call in examined.program.calls():
        if module.dotted(call.func) in functions:
            yield Save(module=module, call=call, path=argument(call, PATH_NAMES, 1))


def _chief_alone(examined: Examined, saves: list[Save]) -> Check:
    save = saves[0]
    place = save.module.place(save.call)
    if examined.parameter_server:
        yield Subject.SAVING.unknown(
            f"whether `{save.shown}`, reached by the chief alone, runs under which strategy",
            place,
        )
        return
    yield Subject.SAVING.fault(
        level=examined.harm(),
        found=f"Only the chief reaches `{save.shown}` under MultiWorkerMirroredStrategy",
        place=place,
        cost="All replicas must take part in saving: the chief waits until the others exit and it fails, or until "
        "the job times out. You pay for all machines until then and get no model.",
        repair="Save on every replica: the chief to AIP_MODEL_DIR, the others to a temporary directory that "
        "they remove: model.save(model_dir if chief else tempfile.mkdtemp()).",
    )


def _shared(examined: Examined, save: Save) -> Finding | None:
    """The fault of a save that other replicas than the chief reach, or None."""
    if knows_role(examined.program, save.module, save.call):
        return None
    place, path = save.module.place(save.call), save.path
    match Origin.UNKNOWN if path is None else origin_of(examined.program, save.module, path):
        case Origin.OWN:
            return None
        case Origin.UNKNOWN:
            found = f"whether the replicas save to different directories with `{save.shown}`"
            return Subject.SAVING.unknown(found, place)
        case Origin.SAME:
            shown = "" if path is None else f" ({ast.unparse(path)})"
            return Subject.SAVING.fault(
                f"Every replica reaches `{save.shown}` with the same path{shown}",
                place,
                level=examined.harm(),
                repair="Write there only from the chief; let the others write to a temporary directory that they remove: "
                "model.save(model_dir if chief else tempfile.mkdtemp()).",
            )
