"""One reader per dialect of request; each takes the parsed document and gives what the program must fit.

Sources: schemas/training_request.v1.schema.json; the reference of CustomJobSpec, HyperparameterTuningJob and
StudySpec (https://cloud.google.com/vertex-ai/docs/reference/rest/v1); that of TrainingInput and
HyperparameterSpec of AI Platform Training.
"""

from collections.abc import Iterator
from typing import Any

from trainmaster.inspect.request.document import (
    Document,
    count,
    listed,
    member,
    parameter,
    path,
    texts,
    variables,
)
from trainmaster.inspect.request.request import Kind, Parameter, Request

LEGACY_METRIC = "training/hptuning/metric"  # the default of hyperparameterMetricTag, and of hypertune


def own(document: Document, shown: str) -> Request:
    """Trainmaster's own dialect."""
    tuning, cluster = member(document, "tuning"), member(document, "cluster")
    chief, package = member(cluster, "chief"), member(document, "python_package")
    package = member(chief, "python_package") or package
    return Request(
        path=shown,
        is_tuning=tuning is not None,
        metrics=tuple(str(member(metric, "id")) for metric in listed(member(tuning, "metrics"))),
        parameters=tuple(_own_parameters(member(tuning, "parameters"))),
        args=texts(member(chief, "args") or member(document, "args")),
        env=variables(member(document, "env")) | variables(member(chief, "env")),
        command=texts(member(chief, "command") or member(document, "command")),
        module=member(package, "module"),
        image=member(chief, "image") or member(package, "executor_image") or member(document, "image"),
        workers=_own_count(cluster, "workers"),
        parameter_servers=_own_count(cluster, "parameter_servers"),
        evaluators=_own_count(cluster, "evaluators"),
        says_master=member(cluster, "replica_environment") == "ai_platform",
        restarts_together=path(document, "scheduling", "restart_on_worker_restart") is True,
    )


def _own_count(cluster: object, role: str) -> int:
    found = member(cluster, role)
    has_its_own = member(found, "image") is not None or member(found, "python_package") is not None
    return 0 if has_its_own else count(member(found, "count"))


def _own_parameters(parameters: object) -> Iterator[Parameter]:
    for name, spec in parameters.items() if isinstance(parameters, dict) else ():
        yield parameter(
            name,
            str(member(spec, "type")).lower(),
            low=member(spec, "min"),
            values=listed(member(spec, "values")),
        )
        for conditional in listed(member(spec, "conditional")):
            yield from _own_parameters(member(conditional, "parameters"))


def vertex(document: Document, shown: str) -> Request:
    """What `gcloud ai custom-jobs create --config` and `hp-tuning-jobs create --config` take."""
    study = member(document, "study_spec")
    job = member(document, "trial_job_spec") or member(document, "job_spec") or document
    pools = [*listed(member(job, "worker_pool_specs")), None, None, None, None]
    chief = pools[0]
    container, package = member(chief, "container_spec"), member(chief, "python_package_spec")
    program = container if container is not None else package
    return Request(
        path=shown,
        is_tuning=study is not None,
        metrics=tuple(str(member(metric, "metric_id")) for metric in listed(member(study, "metrics"))),
        parameters=tuple(
            _vertex_parameter(spec) for spec in _flat(listed(member(study, "parameters")), "parameter_spec")
        ),
        args=texts(member(program, "args")),
        env=variables(member(program, "env")),
        command=texts(member(container, "command")),
        module=member(package, "python_module"),
        image=member(container, "image_uri") or member(package, "executor_image_uri"),
        workers=_vertex_count(pools[1], program),
        parameter_servers=_vertex_count(pools[2], program),
        evaluators=_vertex_count(pools[3], program),
        restarts_together=path(job, "scheduling", "restart_job_on_worker_restart") is True,
    )


def _vertex_count(pool: object, program: object) -> int:
    """Replicas of this pool, if it runs the chief's image or package."""

    def runs(spec: object) -> set[str]:
        names = ("image_uri", "python_module")
        return {str(found) for name in names if (found := member(spec, name)) is not None}

    spec = member(pool, "container_spec") or member(pool, "python_package_spec")
    return count(member(pool, "replica_count")) if runs(spec) & runs(program) else 0


def _flat(specs: Any, child: str) -> Iterator[Any]:  # Any: parsed YAML or JSON
    for spec in specs:
        yield spec
        conditional = listed(member(spec, "conditional_parameter_specs"))
        yield from _flat([member(each, child) for each in conditional], child)


def _vertex_parameter(spec: object) -> Parameter:
    for kind in Kind:
        if (values := member(spec, f"{kind}_value_spec")) is not None:
            low, listing = member(values, "min_value"), listed(member(values, "values"))
            return parameter(member(spec, "parameter_id"), kind, low=low, values=listing)
    raise ValueError(f"parameter {member(spec, 'parameter_id')!r} has no value spec")


def legacy(document: Document, shown: str) -> Request:
    """The `config.yaml` of AI Platform Training."""
    training = member(document, "training_input")
    tuning, chief = member(training, "hyperparameters"), member(training, "master_config")
    return Request(
        path=shown,
        is_tuning=tuning is not None,
        metrics=() if tuning is None else (member(tuning, "hyperparameter_metric_tag") or LEGACY_METRIC,),
        parameters=tuple(
            parameter(
                member(spec, "parameter_name"),
                str(member(spec, "type")).lower(),
                low=member(spec, "min_value"),
                values=listed(member(spec, "categorical_values") or member(spec, "discrete_values")),
            )
            for spec in listed(member(tuning, "params"))
        ),
        args=texts(member(chief, "container_args") or member(training, "args")),
        command=texts(member(chief, "container_command")),
        module=member(training, "python_module"),
        image=member(chief, "image_uri"),
        workers=_legacy_count(training, "worker"),
        parameter_servers=_legacy_count(training, "parameter_server"),
        evaluators=_legacy_count(training, "evaluator"),
        says_master=member(training, "use_chief_in_tf_config") is False,
        job_dir=member(training, "job_dir"),
    )


def _legacy_count(training: object, role: str) -> int:
    image = path(training, f"{role}_config", "image_uri")
    same = image is None or image == path(training, "master_config", "image_uri")
    return count(member(training, f"{role}_count")) if same else 0
