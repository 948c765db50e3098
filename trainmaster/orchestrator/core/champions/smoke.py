"""The job that tries out a champion's model: `registry.smoke` of the policy.

It runs in the image that trained the model, with the requirements of the run's script, as the account that scores
models. So its program gets no file of ours: it is a text, and needs Python 3.9 or newer and the model's library.
"""

from collections.abc import Mapping

from trainmaster.orchestrator.core.names import STEP_LABEL
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy
from trainmaster.orchestrator.core.requests.script import VARIABLE, run_command
from trainmaster.orchestrator.core.requests.spec import (
    Cluster,
    Container,
    JobSpec,
    Scheduling,
    Script,
    WorkerPool,
)
from trainmaster.orchestrator.core.runs.end import SMOKE

EXAMPLE_NAME, SMOKE_FOLDER = "example.json", "_smoke"
"""No model has the name of the folder."""
MODEL = "model"
"""By this name the program's metrics.json has its numbers."""
FORMATS = ("saved_model", "keras", "keras_h5", "scikit_learn", "pickle", "xgboost")
"""Of the formats of core/completion/model.py those that the program loads."""
PROGRAM = """\
import argparse, json, math, os, pathlib

parser = argparse.ArgumentParser()
for name in ("model", "format", "example", "output"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

def local(uri):
    return pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), uri[len("gs://"):])

def one(*suffixes):
    # The path of the model's file that ends so.
    found = [path for path in sorted(local(args.model).rglob("*")) if path.name.endswith(suffixes)]
    if args.model.endswith(suffixes):
        found = [local(args.model)]
    if len(found) != 1:
        raise ValueError("expected one file that ends in %s, found %d" % (" or ".join(suffixes), len(found)))
    return str(found[0])

def saved_model(instances):
    import tensorflow as tf
    serve = tf.saved_model.load(os.path.dirname(one("saved_model.pb"))).signatures["serving_default"]
    inputs = serve.structured_input_signature[1]
    def column(name):
        return [each[name] if isinstance(each, dict) else each for each in instances]
    found = serve(**{name: tf.constant(column(name), spec.dtype) for name, spec in inputs.items()})
    return next(iter(found.values())).numpy()

def keras(instances):
    import numpy
    try:
        from tensorflow import keras
    except ImportError:
        import keras
    return keras.models.load_model(one(".keras", ".h5", ".hdf5")).predict(numpy.array(instances))

def scikit_learn(instances):
    import joblib
    return joblib.load(one(".joblib")).predict(instances)

def pickle_model(instances):
    import pickle
    with open(one(".pkl", ".pickle"), "rb") as file:
        return pickle.load(file).predict(instances)

def xgboost(instances):
    import numpy, xgboost
    model = xgboost.Booster(model_file=one(".ubj", ".bst", ".xgb", ".xgboost"))
    return model.predict(xgboost.DMatrix(numpy.array(instances)))

def numbers(values):
    values = values.tolist() if hasattr(values, "tolist") else values
    for each in values if isinstance(values, (list, tuple)) else [values]:
        yield from numbers(each) if isinstance(each, (list, tuple)) else [each]

ways = {"saved_model": saved_model, "keras": keras, "keras_h5": keras, "scikit_learn": scikit_learn,
        "pickle": pickle_model, "xgboost": xgboost}
try:
    document = json.loads(local(args.example).read_text())
    instances = document["instances"] if isinstance(document, dict) else document
    predictions = ways[args.format](instances)
    if len(predictions) != len(instances):
        raise ValueError("%d predictions for %d instances" % (len(predictions), len(instances)))
    if any(isinstance(each, float) and not math.isfinite(each) for each in numbers(predictions)):
        raise ValueError("a prediction is not finite: %s" % (predictions,))
    result = {"model": {"predictions": len(predictions)}}
except Exception as error:
    result = {"failure": "%s: %s" % (type(error).__name__, error)}
print(json.dumps(result))
local(args.output).mkdir(parents=True, exist_ok=True)
(local(args.output) / "metrics.json").write_text(json.dumps(result))
"""
"""Writes to the output how many predictions it made, or why it could make none; what it predicts on has the form of
Vertex AI's predict request: `{"instances": [...]}`."""


def smoke_spec(trained: JobSpec, terms: EvaluationPolicy, arguments: Mapping[str, str]) -> JobSpec:
    """The job that tries out the model of `trained`, on the machine and in the time of an evaluation."""
    program = trained.cluster.chief.program
    archive = program.archive if isinstance(program, Script) else None
    container = Container(
        image=program.image,
        command=("python3", "-c", PROGRAM) if archive is None else run_command(archive, "-c", PROGRAM),
        args=tuple(f"--{name}={value}" for name, value in arguments.items()),
        env={} if archive is None else {VARIABLE: archive},
    )
    return JobSpec(
        model_name=trained.model_name,
        cluster=Cluster(chief=WorkerPool(replicas=1, machine=terms.machine, program=container)),
        scheduling=Scheduling(timeout_s=terms.timeout_s),
        labels={**trained.labels, STEP_LABEL: SMOKE},
        encryption_key=trained.encryption_key,
    )
