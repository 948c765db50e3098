"""A rule's request, checked when the rule is dropped: its placeholders, and the request with them filled."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from trainmaster.orchestrator.core.admission.cost import ReadPrices, with_price
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import (
    MAX_COLLECTED,
    Fault,
    Refused,
    json_path,
    listed,
    refusal_of,
)
from trainmaster.orchestrator.core.documents.values import Work, mapping_at, text_at, units
from trainmaster.orchestrator.core.names import Buckets, output_uri
from trainmaster.orchestrator.core.policy.policy import repository
from trainmaster.orchestrator.core.requests.checks.matrix import OF_RULE
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.matrix import MATRIX
from trainmaster.orchestrator.core.requests.placeholders import with_deployment
from trainmaster.orchestrator.core.requests.reading import checked_request, dialect_of
from trainmaster.orchestrator.core.requests.request import RequestRules, too_large
from trainmaster.orchestrator.core.retraining import filling
from trainmaster.orchestrator.core.retraining.base import SAMPLE_RUN_ID, SAMPLE_TIME
from trainmaster.orchestrator.core.retraining.condition import Condition, Manual, NewImage, members_of
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import RunOutputs

SAMPLED = "checked with sample values for its placeholders"
_MODEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_FIXED = ("$.model_name", "$.output.prefix_uri", "$.model_uri")
"""Parts of a rule's request that no placeholder may change: its champion and output are known before it fires."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of a request's check. `makes` None: the request is too faulty to know."""

    faults: tuple[Fault, ...] = ()
    makes: RunOutputs | None = None
    writes_uri: str = ""
    placeholders: tuple[filling.Placeholder, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RuleRequirements:
    """What rules are checked against; the schema of rules is among those of `requests`."""

    requests: RequestRules
    buckets: Buckets
    prices: ReadPrices | None = None


@dataclass(frozen=True, kw_only=True)
class CheckContext:
    """What a request is checked with: the rule's valid conditions, whether these are all, and the work left to it."""

    rule_id: str
    conditions: tuple[Condition, ...]
    all_sound: bool
    requirements: RuleRequirements
    work: Work

    @property
    def members(self) -> tuple[Condition, ...]:
        return tuple(member for condition in self.conditions for member in members_of(condition))


def inline_request(request: Mapping[str, Any], spelled: Mapping[str, str], around: CheckContext) -> Checked:
    """The check of a request inside the rule; its faults have the paths of the rule's text."""
    here = "$.request"
    inside = ((path, text) for path, text in spelled.items() if path.startswith(here))
    own_spelled = {f"${path.removeprefix(here)}": text for path, text in inside}
    checked = _check_request(request, own_spelled, around)
    faults = tuple(fault.moved(lambda path: here + path.removeprefix("$")) for fault in checked.faults)
    return replace(checked, faults=faults)


def template_request(uri: str, template: bytes | Refused | None, around: CheckContext) -> Checked:
    """The check of a request that the rule names; every fault is at `request_uri` and gives the path in the request."""
    read = parse_template(uri, template, around.requirements.requests.names)
    if isinstance(read, Refused):
        return Checked(faults=tuple(_at_uri(fault, uri) for fault in read.faults))
    checked = _check_request(read.value, read.spelled, around) if isinstance(read.value, dict) else Checked()
    return replace(checked, faults=tuple(_at_uri(fault, uri) for fault in (*read.faults, *checked.faults)))


def parse_template(
    uri: str, template: bytes | Refused | None, names: Mapping[str, str]
) -> Document | Refused:
    """The template's values, which are a mapping, or why there are none. `template` None: the object does not exist.

    The placeholders of the deployment are filled by `names`.
    """
    if template is None:
        problem, repair = "the object does not exist", "upload it, and drop the rule again"
        return refusal_of(problem, value=uri, repair=repair)
    if isinstance(template, Refused):
        return template
    refusal = too_large(len(template))
    if refusal is not None:
        return refusal
    read = parse_document(template, as_json=uri.lower().endswith(".json"))
    if isinstance(read.value, dict):
        return replace(read, value=with_deployment(read.value, names))
    fault = Fault(path="$", problem="a request must be a mapping", value=read.value)
    return Refused(faults=read.faults or (fault,))


def _at_uri(fault: Fault, uri: str) -> Fault:
    return replace(fault, path="$.request_uri", problem=f"{uri} at {fault.path}: {fault.problem}")


def _check_request(request: Mapping[str, Any], spelled: Mapping[str, str], around: CheckContext) -> Checked:
    once = units(request)
    if not around.work.take(once):
        return Checked(faults=(around.work.refusal(f"{once} units for its values, texts and placeholders"),))
    faults = tuple(_request_faults(request, spelled, around))
    makes = made_by(request)
    if makes is None:
        return Checked(faults=faults)
    policy = around.requirements.requests.policy
    own = policy.models_uri if policy is not None and policy.team is not None else None
    prefix = makes.output_prefix_uri or own or f"gs://{around.requirements.buckets.models}"
    writes_uri = output_uri(prefix, makes.model_name, "")
    placeholders = filling.find_placeholders(request)
    return Checked(faults=faults, makes=makes, writes_uri=writes_uri, placeholders=placeholders)


def _request_faults(
    request: Mapping[str, Any], spelled: Mapping[str, str], around: CheckContext
) -> list[Fault]:
    """The faults of the placeholders, and then those of the filled request."""
    faults = [
        *filling.place_faults(request, _provided_names(around)),
        *islice(_missing(request, around.conditions), MAX_COLLECTED),
        *_depending(request),
        *([OF_RULE] if MATRIX in request else []),
    ]
    at = {json_path(placeholder.path) for placeholder in filling.placeholders_at(request)}
    placeholders, rules = filling.find_placeholders(request), around.requirements.requests
    documents: dict[tuple[str | None, ...], object] = {}
    for condition, values in _samples(placeholders, around):
        if around.work.is_spent:
            break
        found: list[Fault] = []
        sample = tuple(values.get(placeholder.name) for placeholder in placeholders)
        if sample not in documents:  # a request whose placeholders have the same values is the same
            documents[sample] = filling.filled_request(request, values)
            filled = Document(value=documents[sample], spelled=spelled)
            checked = checked_request(filled, rules, work=around.work)
            outcome = with_price(checked, rules.policy, around.requirements.prices)
            found += outcome.faults if isinstance(outcome, Refused) else ()
        found += _by_tag(documents[sample], condition, around.work)
        reported = {fault.path for fault in faults}
        faults += [_as_sampled(fault, at) for fault in found if fault.path not in reported]
    return faults


def made_by(request: Mapping[str, Any]) -> RunOutputs | None:
    """What the request's runs make; None if the request has no valid model name."""
    meant = dialect_of(request).in_own(request, None).document
    model_name = meant.get("model_name")
    if not isinstance(model_name, str) or not _MODEL_NAME.fullmatch(model_name):
        return None
    return RunOutputs(
        model_name=model_name,
        output_prefix_uri=text_at(meant, "output", "prefix_uri"),
        model_uri=text_at(meant, "model_uri"),
        promotes="champion" in meant,
    )


def _provided_names(around: CheckContext) -> Iterable[str]:
    if not around.all_sound:
        return filling.NAMES  # an invalid condition might provide any of them
    watches = any(isinstance(member, NewData) for member in around.members)
    given = (member.subject for member in around.members)
    return filling.names_about("rule", "firing", "champion", *(("data",) if watches else ()), *given)


def _missing(request: Mapping[str, Any], conditions: tuple[Condition, ...]) -> Iterator[Fault]:
    """Placeholders without a default to which a condition never gives a value, so that it could never fire."""
    given = [filling.names_about(*(member.subject for member in members_of(one))) for one in conditions]
    special = {
        name: [one.kind for one, names in zip(conditions, given, strict=True) if name not in names]
        for name in frozenset().union(*given)
    }
    watches = any(isinstance(condition, NewData) for condition in conditions)
    for found in filling.placeholders_at(request):
        name, without = found.placeholder.name, special.get(found.placeholder.name)
        if name == "data.since" and watches:
            firing, repair = "the first firing", "give it a default: ${data.since:-1970-01-01T00:00:00Z}"
        elif without:
            firing = f"a firing by {listed(dict.fromkeys(without))}"
            repair = f"give it a default, ${{{name}:-…}}, or split this rule in two"
        else:
            continue
        if found.placeholder.default is None:
            problem = f"{firing} has no value for it, so the rule could never fire"
            yield Fault(at=found.path, problem=problem, value=str(found.placeholder), repair=repair)


def _depending(request: Mapping[str, Any]) -> Iterator[Fault]:
    """Placeholders where the text must be the same in every firing."""
    meant = dialect_of(request).in_own(request, None)
    placeholders = {json_path(found.path): found.placeholder for found in filling.placeholders_at(request)}
    problem = "it must not depend on what fires the rule"
    allowed = "fixed text: a rule's champion and its output are known before it fires"
    for path in map(meant.written_path, _FIXED):
        if path in placeholders:
            yield Fault(path=path, problem=problem, value=str(placeholders[path]), allowed=allowed)


def _samples(
    placeholders: Collection[filling.Placeholder], around: CheckContext
) -> Iterator[tuple[Condition, Mapping[str, str]]]:
    """Two sets of values for each condition: all values that it may provide, and the fewest."""
    needed = {one.name for one in placeholders if one.default is None or filling.unfit(one.default)}
    for condition in around.conditions or (Manual(),):
        values = _sample_values(condition, around)
        for lacking in (frozenset[str](), filling.names_about("champion", "data")):
            given = {name: text for name, text in values.items() if name in needed or name not in lacking}
            # The placeholder's own fault is already reported; the sample only keeps the rest valid.
            yield condition, {**dict.fromkeys(needed, "sample"), **given}


def _sample_values(condition: Condition, around: CheckContext) -> Mapping[str, str]:
    """Values that a firing by this condition may have."""
    models_bucket = around.requirements.buckets.models
    watching = (other for other in (*members_of(condition), *around.members) if isinstance(other, NewData))
    data = next((watched.data_values() for watched in watching), {})
    return {
        "rule.id": around.rule_id,
        "firing.id": SAMPLE_RUN_ID,
        "firing.time": SAMPLE_TIME,
        "firing.condition": condition.kind.value,
        "champion.model_uri": f"gs://{around.requirements.buckets.champions}/sample/{SAMPLE_RUN_ID}/",
        "champion.run_id": SAMPLE_RUN_ID,
        "champion.value": "0.5",
        **data,
        **condition.sample_values(models_bucket),
    }


def _as_sampled(fault: Fault, placeholders: Iterable[str]) -> Fault:
    repair = "; ".join(filter(None, (fault.repair, SAMPLED)))
    return replace(fault, repair=repair) if fault.path in placeholders else fault


def _by_tag(document: object, condition: Condition, work: Work) -> Iterator[Fault]:
    """A fault for each role in which a run started by a new image would use that image by its tag."""
    pushed = {member.repository for member in members_of(condition) if isinstance(member, NewImage)}
    if not pushed or not work.take(units(document)):
        return
    request = mapping_at(document)
    meant = dialect_of(request).in_own(request, None)
    for path, image in Draft(document=meant.document).images.items():
        if "@" not in image and repository(image) in pushed:
            yield Fault(
                path=meant.written_path(json_path(path)),
                problem="the run would use the image by its tag, which may point to another image by then",
                value=image,
                repair="write ${image.uri}, which is the pushed image by its digest",
            )
