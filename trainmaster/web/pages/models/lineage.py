"""The way from a champion back to its data, step by step."""

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from trainmaster.client.explaining.explanation import Explanation
from trainmaster.orchestrator.core.champions.champion import Reign


def lineage(found: Explanation) -> Iterator[tuple[str, list[str], str]]:
    """Each step back: what it is, its lines, and the page about it, if there is one."""
    reign = found.champion
    if reign is None:
        return
    lineage = reign.lineage
    source = found.record.source if found.record else None
    yield "Champion", [reign.model_uri, *_labelled("manifest sha256", lineage.manifest_sha256)], ""
    if reign.trained_uri:
        yield "Copied from", [reign.trained_uri], ""
    yield (
        "Run",
        [reign.run_id if found.run else f"{reign.run_id}: its record is gone"],
        _run_address(reign.run_id),
    )
    if lineage.job_name:
        yield "Job", [lineage.job_name, *_labelled("trial", lineage.trial_id)], ""
    yield "Image", [lineage.image, *([] if lineage.image_digest else ["a tag: no digest is known"])], ""
    if lineage.request_uri:
        yield "Request", [_with_generation(lineage.request_uri, lineage.request_generation)], ""
    if lineage.rule_id:
        yield (
            "Rule",
            [f"{lineage.rule_id}, firing {lineage.firing}"],
            f"/rules/{quote(lineage.rule_id, safe='')}",
        )
    yield "Event", [" ".join(filter(None, (lineage.source, lineage.event_id)))], ""
    if data := _data(reign, (source.firing_values if source else None) or {}):
        yield "Data", data, ""


def _run_address(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


def _labelled(label: str, value: str | None) -> list[str]:
    return [f"{label} {value}"] if value else []


def _with_generation(uri: str, generation: int | None) -> str:
    return uri if generation is None else f"{uri}#{generation}"


def _data(reign: Reign, values: Mapping[str, str]) -> list[str]:
    lineage = reign.lineage
    named = ", ".join(filter(None, (lineage.dataset, lineage.dataset_version, lineage.train_split)))
    count, newest, at = (values.get(f"data.{name}") for name in ("count", "newest_uri", "watermark"))
    return [
        *([named] if named else []),
        *([f"{count} {'object' if count == '1' else 'objects'} since the firing before"] if count else []),
        *([f"the last one: {newest}{f', of {at}' if at else ''}"] if newest else []),
    ]
