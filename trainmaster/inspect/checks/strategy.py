"""MultiWorkerMirroredStrategy must be built before TensorFlow's first operation.

Found by running each (TensorFlow 2.21): after one of OPERATIONS the constructor raises
"RuntimeError: Collective ops must be configured at program startup".
"""

import ast

from trainmaster.inspect.checks.examined import MULTI_WORKER, Check, Examined
from trainmaster.inspect.finding import Finding, Subject
from trainmaster.inspect.source.order import Step

OPERATIONS = {
    f"tensorflow.{name}"
    for name in (
        "constant", "zeros", "ones", "fill", "range", "cast", "convert_to_tensor", "Variable", "reshape", "stack",
        "random.uniform", "random.normal", "random.shuffle", "config.list_logical_devices",
        "data.TFRecordDataset", "data.TextLineDataset", "data.Dataset.range", "data.Dataset.from_tensors",
        "data.Dataset.from_tensor_slices", "data.Dataset.from_generator", "data.Dataset.list_files",
        "keras.metrics.Mean", "keras.utils.image_dataset_from_directory",
    )
} | {"tensorflow_datasets.load"}  # fmt: skip


def check(examined: Examined) -> Check:
    operation: Step | None = None
    for step in examined.steps:
        if not isinstance(step.node, ast.Call):
            continue
        name = step.module.dotted(step.node.func)
        if name in OPERATIONS and (operation is None or (step.is_certain and not operation.is_certain)):
            operation = step
        if name in MULTI_WORKER:
            yield _order_finding(examined, operation, step)
            return


def _order_finding(examined: Examined, operation: Step | None, strategy: Step) -> Finding:
    built = strategy.module.place(strategy.node)
    if operation is None:
        return Subject.STRATEGY.fine("MultiWorkerMirroredStrategy is built before the first operation", built)
    before = operation.module.place(operation.node)
    name = ast.unparse(operation.node.func) if isinstance(operation.node, ast.Call) else ""
    if not operation.is_certain:
        return Subject.STRATEGY.unknown(
            f"whether `{name}` runs before the strategy is built at {built}", before
        )
    return Subject.STRATEGY.fault(
        level=examined.harm(),
        found=f"`{name}` runs before MultiWorkerMirroredStrategy is built at {built}",
        place=before,
        cost="With several replicas, each exits at once: Collective ops must be configured at program startup.",
        repair="Build the strategy first, right after the imports, before any operation or data set.",
    )
