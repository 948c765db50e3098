"""A model's version in Vertex AI's Model Registry: what is uploaded, and which version the alias `champion` names."""

from dataclasses import dataclass, replace

from trainmaster.orchestrator.core.champions.champion import Champion, Registered, lineage_of
from trainmaster.orchestrator.core.names import (
    DEPLOYMENT_LABEL,
    RUN_LABEL,
    TEAM_LABEL,
    in_team,
    registry_model_id,
)
from trainmaster.orchestrator.core.policy.registry import Registry
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.end import Model
from trainmaster.orchestrator.core.runs.record import RunRecord, measured_metrics

ALIAS = "champion"
DISPLAY_NAME_MAX_CHARS = 128
"""Source: the comment of Model.display_name in google/cloud/aiplatform/v1/model.proto."""
DESCRIPTION_MAX_CHARS, METRICS_MAX = 1000, 10
"""The service documents no bounds of these."""


@dataclass(frozen=True, kw_only=True)
class ModelVersion:
    """A version in the registry. `model` is the model's full name."""

    model: str
    number: int
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelUpload:
    """A version to add. Without an `image` it only refers to its files, by its description.

    The service's own SDK sends files and image together or neither.
    Source: `Model.upload` in https://github.com/googleapis/python-aiplatform/blob/main/google/cloud/aiplatform/models.py
    """

    model_id: str
    display_name: str
    artifact_uri: str
    image: str | None
    labels: dict[str, str]
    description: str


def upload_of(
    record: RunRecord, spec: JobSpec, model: Model, uri: str, registry: Registry, *, deployment: str
) -> ModelUpload:
    """The version for the run's model, whose files are at `uri`."""
    team = record.source.team
    known = {RUN_LABEL: record.run_id, TEAM_LABEL: team, DEPLOYMENT_LABEL: deployment}
    name = in_team(team, spec.model_name)
    return ModelUpload(
        model_id=registry_model_id(spec.model_name, team, deployment),
        display_name=registry.display_name.replace("{model_name}", name)[:DISPLAY_NAME_MAX_CHARS],
        artifact_uri=uri.rpartition("/")[0],
        image=registry.serving.get(model.format or ""),
        labels={**registry.labels, **{label: value for label, value in known.items() if value}},
        description=_description(record, spec, uri),
    )


def _description(record: RunRecord, spec: JobSpec, uri: str) -> str:
    """The run, its metrics, and where the model came from, a line each."""
    lineage = lineage_of(record, spec)
    dataset = ", ".join(filter(None, (lineage.dataset, lineage.dataset_version, lineage.train_split)))
    metrics = list(measured_metrics(record).items())[:METRICS_MAX]
    lines = {
        "run": record.run_id,
        "files": uri,
        "metrics": ", ".join(f"{name} {value:g}" for name, value in metrics),
        "data set": dataset,
        "image": lineage.image,
        "rule": lineage.rule_id,
        "job": lineage.job_name,
        "manifest": f"sha256 {lineage.manifest_sha256}" if lineage.manifest_sha256 else "",
    }
    return "\n".join(f"{title}: {text}" for title, text in lines.items() if text)[:DESCRIPTION_MAX_CHARS]


def with_registered(champion: Champion | None, run_id: str, version: ModelVersion | None) -> Champion | None:
    """The document, which says that the alias names that version of its current run, or none.

    None if another run has become champion.
    """
    if champion is None or champion.current is None or champion.current.run_id != run_id:
        return None
    registered = (
        Registered(run_id=run_id, model=version.model, version=str(version.number)) if version else None
    )
    return champion if champion.registered == registered else replace(champion, registered=registered)
