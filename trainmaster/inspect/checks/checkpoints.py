"""Replicas are restarted: does the program start from scratch each time?

Source: "Understand the custom training service" of the Vertex AI guide
(https://cloud.google.com/vertex-ai/docs/training/understanding-training-service): maintenance and spot
machines restart replicas; a checkpoint at least every four hours is advised.
"""

import ast

from trainmaster.inspect.checks.examined import Call, Check, Examined
from trainmaster.inspect.finding import Finding, Level, Location, Subject
from trainmaster.inspect.source.module import argument, last_name
from trainmaster.inspect.source.origins import texts_of

KEPT_AND_READ = ("BackupAndRestore", "CheckpointManager")
READERS = {
    "load_weights",
    "load_model",
    "restore",
    "latest_checkpoint",
    "load_checkpoint",
    "load_state_dict",
}
STEPS = {"backward", "minimize", "apply_gradients", "train_on_batch", "make_train_function"}
WRITERS = ("ModelCheckpoint", "save_weights", "Checkpoint")
LOCAL = ("/tmp", "/var", "./", "/root", "/home", "/app")  # noqa: S108 - places that do not outlive a machine
REPAIR = "Write checkpoints under AIP_CHECKPOINT_DIR and restore them at the start"
REPAIR_BY = {
    "lightning": "Trainer(default_root_dir=…) and fit(ckpt_path=…) do both.",
    "torch": "torch.save the state_dict of model and optimizer after each epoch, and load_state_dict them at the start.",
    "keras": "tf.keras.callbacks.BackupAndRestore does both.",
}


def check(examined: Examined) -> Check:
    training = _training(examined)
    if training is None:
        return
    named = {last_name(call.func): (module, call) for module, call in examined.program.calls()}
    if kept := [named[name] for name in KEPT_AND_READ if name in named]:
        yield _where(examined, kept[0])
    elif READERS & named.keys():
        yield Subject.CHECKPOINTS.fine("The program restores earlier weights")
    elif examined.program.is_whole:
        written = next((named[name] for name in WRITERS if name in named), None)
        module, call = written or training
        yield Subject.CHECKPOINTS.fault(
            level=Level.WARNING,
            found="Checkpoints are written but never restored"
            if written
            else "The program writes no checkpoints",
            place=module.place(call),
            repair=_repair(examined),
        )
    yield from _peers(examined)


def _training(examined: Examined) -> Call | None:
    """Where the program trains, if it is seen to."""
    for module, call in examined.program.calls():
        if module.dotted(call.func) == "tensorflow.GradientTape" or last_name(call.func) in STEPS:
            return module, call
    # Models of other libraries, for example scikit-learn's, cannot continue from a checkpoint.
    return next(examined.on_models("fit"), None) if examined.framework else None


def _where(examined: Examined, kept: Call) -> Finding:
    module, call = kept
    place = module.place(call)
    position = 0 if last_name(call.func) == "BackupAndRestore" else 1
    given = argument(call, ("backup_dir", "directory"), position)
    paths = texts_of(examined.program, module, given) or frozenset()
    if local := [path for path in paths if path.startswith(LOCAL) or not path.startswith(("/", "gs:"))]:
        return Subject.CHECKPOINTS.fault(
            level=Level.WARNING,
            found=f"Checkpoints are kept in {local[0]!r}, on the replica's local disk",
            place=place,
            repair=_repair(examined),
        )
    return Subject.CHECKPOINTS.fine(
        f"`{ast.unparse(call.func)}` writes checkpoints and resumes from them", place
    )


def _repair(examined: Examined) -> str:
    how = REPAIR_BY.get(examined.framework or "")
    return f"{REPAIR}: {how}" if how else f"{REPAIR}."


def _peers(examined: Examined) -> Check:
    request = examined.request
    if request is None or not request.workers or not examined.multi_worker:
        return
    if request.spec.scheduling.restart_on_worker_restart:
        return
    yield Subject.CHECKPOINTS.fault(
        level=Level.WARNING,
        found="A replica restarts alone, and MultiWorkerMirroredStrategy cannot readmit it",
        place=Location(path=request.path),
        cost="One lost replica fails the whole run.",
        repair="Set scheduling.restart_on_worker_restart (restartJobOnWorkerRestart) to true.",
    )
