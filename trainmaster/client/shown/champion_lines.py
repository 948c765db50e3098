"""Lines about a champion: its value, and the way from it back to its data."""

from collections.abc import Iterator, Mapping

from trainmaster.client.shown.run_lines import approve_command
from trainmaster.client.terminal import Fact, plural
from trainmaster.client.times import minute
from trainmaster.orchestrator.core.champions.champion import Champion, Reign
from trainmaster.orchestrator.core.names import in_team


def value_text(reign: Reign) -> str:
    """The metric with its value: `accuracy 0.93`."""
    return f"{reign.contest.metric} {reign.value:g}"


def version_text(champion: Champion) -> str:
    """`version 2`: the champion's in the Model Registry, which has the alias; empty without one."""
    return f"version {champion.registered_as.version}" if champion.registered_as else ""


def registry_facts(champion: Champion) -> Iterator[Fact]:
    """The champion's version in the Model Registry, if it has one."""
    if champion.registered_as is not None:
        yield "registry", [f"{version_text(champion)}, alias champion", champion.registered_as.model]


def pending_lines(champion: Champion) -> list[str]:
    """The challenger that waits for approval: its value, why it won, until when it waits, and the command; empty without one."""
    pending = champion.pending
    if pending is None:
        return []
    name = in_team(champion.team, champion.model_name)
    return [
        f"{pending.reign.run_id} waits for approval until {minute(pending.expires_at)} UTC: {pending.reason}",
        approve_command(name, pending.reign.run_id),
    ]


def lineage_facts(reign: Reign, firing_values: Mapping[str, str] | None = None) -> Iterator[Fact]:
    """The way from the champion's files back to its data; `firing_values` are those of the rule that started its run."""
    lineage = reign.lineage
    yield from champion_file_facts(reign)
    yield "run", [reign.run_id]
    if lineage.job_name:
        yield "job", [lineage.job_name, *([f"trial {lineage.trial_id}"] if lineage.trial_id else [])]
    yield "image", [lineage.image, *([] if lineage.image_digest else ["a tag: no digest is known"])]
    if lineage.request_uri:
        generation = lineage.request_generation
        yield "request", [lineage.request_uri + ("" if generation is None else f"#{generation}")]
    if lineage.rule_id:
        yield "rule", [f"{lineage.rule_id}, firing {lineage.firing}"]
    yield "event", [f"{lineage.source} {lineage.event_id}"]
    if lines := data_lines(firing_values or {}):
        yield "data", lines


def champion_file_facts(reign: Reign) -> Iterator[Fact]:
    """The copy that no job can change, its manifest, where it was trained, and on what."""
    lineage = reign.lineage
    yield "model", [reign.model_uri]
    if manifest := [f"sha256 {lineage.manifest_sha256}"] if lineage.manifest_sha256 else []:
        yield "manifest", [*([lineage.manifest_uri] if lineage.manifest_uri else []), *manifest]
    yield "copied from", [reign.trained_uri]
    if dataset := ", ".join(filter(None, (lineage.dataset, lineage.dataset_version, lineage.train_split))):
        yield "data set", [dataset]


def data_lines(firing_values: Mapping[str, str]) -> list[str]:
    """The objects that had arrived when a rule fired: how many, and the last one."""
    count, newest, arrived_at = (
        firing_values.get(f"data.{name}") for name in ("count", "newest_uri", "watermark")
    )
    lines = [f"{plural(int(count), 'object')} since the firing before"] if count and count.isdecimal() else []
    if newest:
        lines.append(f"the last one: {newest}{f', of {arrived_at}' if arrived_at else ''}")
    return lines
