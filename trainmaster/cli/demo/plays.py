"""The demos, each as the commands that a user would type."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from trainmaster.cli.demo.stage import EXAMPLES, DemoFailed, DemoStage, doing
from trainmaster.client.rules.champions import find_champion
from trainmaster.client.rules.listing import read_status
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.orchestrator.core.champions.champion import Verdict

PREPARED_DATA = "TFDS_DATA_DIR"
"""The variable that names a folder with the real data sets, which the first two demos then train on."""
DATA_URI = "gs://${project}-datasets/tfds"  # in the requests
STARTER = "starter"  # of the request that `trainmaster init` writes
MODEL_NAME = "horses-retrain"  # of the request and the rule of the retraining
DATASET = "horses_or_humans"
MANIFEST_NAME = "export.json"
UNSEEN_IMAGES = 50
BURST_FILES = 200
DONE = "delivery.json"  # ends a delivery, in its top folder; an empty marker such as _SUCCESS would not count
PROMOTED = (True, True, False)
"""Whether each run of the retraining is promoted: the first champion's, the good burst's, the bad burst's."""


def play_training(stage: DemoStage) -> None:
    """One request becomes one model, trained by two replicas together."""
    _train(stage, "demo.yaml", "--dataset=cassava", "--examples=448")
    stage.say_notice()


def play_tuning(stage: DemoStage) -> None:
    """One request becomes six trials, two at a time, and the best one's model."""
    run_id = _train(stage, "demo_tuning.yaml", f"--dataset={DATASET}", "--examples=240")
    stage.run_verb("study", run_id)
    stage.run_verb("study", run_id, "--html", stage.state / "study.html")


def play_light(stage: DemoStage) -> None:
    """A script trains briefly, then longer; the second model is better, and becomes champion in place of the first."""
    project = stage.state / "project"
    stage.run_verb("init", project)
    # Inside a checkout, its folder alone is the project.
    brief = ("--epochs=1", "--learning_rate=0.001")
    first = stage.submit(project / "request.yaml", "--root", project, "--", *brief)
    stage.run_verb("watch", first)
    second = stage.submit(first, "--", "--epochs=20", verb="again")
    stage.run_verb("watch", second)
    stage.run_verb("champions", "show", STARTER)
    considered = find_champion(stage.clients, STARTER).champion.considered
    if [(verdict.run_id, verdict.promoted) for verdict in considered] != [(first, True), (second, True)]:
        raise DemoFailed(
            "Both runs should have been promoted, one after the other; the table above says why not."
        )


def _train(stage: DemoStage, request_name: str, *data: str) -> str:
    """Train a model as the request says, compare its files with the record, and classify test pictures; the run's id."""
    request, data_dir = EXAMPLES / request_name, os.environ.get(PREPARED_DATA)
    if data_dir:
        data_dir = str(Path(data_dir).resolve())
        text = request.read_text().replace(DATA_URI, data_dir)
        request = stage.state / request_name
        request.write_text(text)
    else:
        folder = stage.state / "dataset"
        stage.write_dataset(folder, *data)
        stage.upload_dataset(folder)
        data_dir = str(folder)
    run_id = stage.submit(request)
    stage.run_verb("watch", run_id)
    model = stage.state / "model"
    stage.run_verb("download", run_id, model)
    with doing(stage.console, "Classifying images that the model was not trained on"):
        right, asked = count_right(model, data_dir, stage.state / "prediction.log")
    stage.say(f"{right} of {asked} test images classified correctly")
    return run_id


def play_retraining(stage: DemoStage) -> None:
    """New data trains a better model, which becomes champion; the model of data with wrong labels does not.

    Both bursts have 147 pictures to learn from and 49 to test on, each in a file, 3 files that describe them, and DONE.
    The first champion has seen a few pictures of the first. In the second, half of the labels to learn from are wrong.
    """
    clean, noisy = stage.state / "data" / "1", stage.state / "data" / "2"
    wrong_labels = ("--label_noise=0.5", f"--mislabelled_dir={noisy}")
    stage.write_dataset(
        clean, f"--dataset={DATASET}", "--examples=196", "--examples_per_file=1", *wrong_labels
    )
    stage.upload_dataset(clean)
    runs = [stage.submit(EXAMPLES / "demo_retrain.yaml")]
    stage.run_verb("watch", runs[0])
    stage.run_verb("rules", "apply", EXAMPLES / "demo_rule.yaml")
    for firing, folder in enumerate((clean, noisy), start=1):
        _deliver_burst(stage, firing, folder)
        runs.append(stage.wait_for("the rule to fire", partial(_run_of_firing, stage, firing)))
        stage.run_verb("watch", runs[-1])
    stage.run_verb("champions", "show", MODEL_NAME)
    listed = [row.run_id for row in list_runs(stage.clients, Filters(), limit=10).rows][::-1]
    considered = find_champion(stage.clients, MODEL_NAME).champion.considered
    if problems := "\n".join(broken_claims(runs, listed, considered)):
        raise DemoFailed(problems)
    stage.say(f"\n2 bursts of {BURST_FILES} files started 2 runs: exactly one each")


def _deliver_burst(stage: DemoStage, number: int, folder: Path) -> None:
    bucket, prefix = stage.clients.context.data_bucket, f"horses/burst-{number}/"
    files = stage.upload_folder(folder, bucket, prefix)
    stage.clients.storage.bucket(bucket).blob(f"{prefix}{DONE}").upload_from_string(
        json.dumps({"files": files})
    )
    stage.say(f"\nburst {number}: {files + 1} files in gs://{bucket}/{prefix}")


def _run_of_firing(stage: DemoStage, number: int) -> str | None:
    status = read_status(stage.clients, "rules/demo_rule.yaml")
    last = status.last_firing if status is not None else None
    return last.run_id if last is not None and last.number == number else None


def broken_claims(runs: Sequence[str], listed: Sequence[str], considered: Sequence[Verdict]) -> Iterator[str]:
    """What did not go as the demo says, of its runs, of all runs on the stack, oldest first, and of the verdicts."""
    if listed != runs:
        yield f"Two bursts should have started one run each; the runs are: {', '.join(listed)}"
    if [(verdict.run_id, verdict.promoted) for verdict in considered] != [*zip(runs, PROMOTED, strict=True)]:
        reasons = "; ".join(f"{verdict.run_id}: {verdict.reason}" for verdict in considered)
        yield f"The first two runs should have been promoted and the third not; the verdicts are: {reasons}"


def count_right(model: Path, data_dir: str, log: Path) -> tuple[int, int]:
    """How many of the first test pictures the model classifies correctly, at most UNSEEN_IMAGES, and of how many.

    Args:
        model: the folder of a SavedModel that the trainer exported, with its manifest.
        data_dir: the TFDS data directory that it was trained on.
        log: gets what TensorFlow writes to standard error.

    Raises:
        OSError: the folder holds no manifest, or no SavedModel.
    """
    manifest = json.loads((model / MANIFEST_NAME).read_bytes())
    # TensorFlow then loads Keras, which is not needed here, only when it is used: a third of the start.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    with _errors_to(log):
        import tensorflow as tf
        import tensorflow_datasets as tfds

        builder = tfds.builder(manifest["dataset"]["name"], data_dir=data_dir)
        name_of = builder.info.features["label"].int2str
        raw = {"image": tfds.decode.SkipDecoding()}
        split = builder.as_dataset(split=f"test[:{UNSEEN_IMAGES}]", decoders=raw)
        images, labels = zip(
            *((each["image"], each["label"]) for each in split.as_numpy_iterator()), strict=True
        )
        loaded = tf.saved_model.load(str(model))
        serve = loaded.signatures["serving_default"]
        (argument,) = serve.structured_input_signature[1]
        best = serve(**{argument: tf.constant(list(images))})["probabilities"].numpy().argmax(axis=1)
    names = [manifest["class_names"][index] for index in best]
    return sum(name == name_of(label) for name, label in zip(names, labels, strict=True)), len(names)


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Standard error of this process, native code included, goes to `log`: TensorFlow greets there at import."""
    kept = os.dup(2)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


PLAYS: Mapping[str, Callable[[DemoStage], None]] = {
    "training": play_training,
    "tuning": play_tuning,
    "retraining": play_retraining,
    "light": play_light,
}
"""By the name of the demo."""
