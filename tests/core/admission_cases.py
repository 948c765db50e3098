"""Candidates, prices and policies for the tests of admission."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.core.shipped import NAMES, REQUEST_RULES, ROOT, deployed_policy_document
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.admission.candidates import Candidate, parse_candidates
from trainmaster.orchestrator.core.admission.cost import with_price
from trainmaster.orchestrator.core.admission.prices import Prices, prices_from
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.reading import checked_request
from trainmaster.orchestrator.core.requests.request import Request, RequestRules

CHIEF: dict[str, Any] = {"machine": "n1-standard-4"}
V100: dict[str, Any] = {"type": "NVIDIA_TESLA_V100", "count": 1}
GCLOUD: dict[str, Any] = {
    "displayName": "m",
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": "us-docker.pkg.dev/my-project/r/i"},
        }
    ],
}
"""What `document()` says, in the file format of gcloud."""
ROW: dict[str, Any] = {
    "as_of": "2026-03-01",
    "source": "https://example.com/prices",
    "regions": ["us-central1"],
}
TABLE: dict[str, Any] = {
    "schema": "prices.v1",
    "currency": "USD",
    "rows": [
        {
            **ROW,
            "fee": 0.5,
            "machines": {"n1-standard-4": 0.2, "n1-standard-8": 0.4},
            "accelerators": {"NVIDIA_TESLA_T4": 0.4},
            "disks": {"pd-ssd": 7.3},  # 100 GB are 1 an hour, 1.5 with the fee
        },
        {**ROW, "spot": True, "machines": {"n1-standard-4": 0.1}},
        {**ROW, "as_of": "2025-01-01", "with_accelerators": True, "machines": {"a2-highgpu-1g": 4}},
    ],
}
PRICES = prices_from(TABLE)


def document(**changes: Any) -> dict[str, Any]:
    return {
        "model_name": "m",
        "image": "us-docker.pkg.dev/my-project/r/i",
        "cluster": {"chief": CHIEF},
        **changes,
    }


def candidates(**changes: Any) -> tuple[Candidate, ...]:
    return parse_candidates(document(**{"region": "us-central1", **changes}))


def policy(admission: Mapping[str, Any] | None = None, **changes: Any) -> Policy:
    """The shipped policy with this admission, of two regions."""
    written = {**deployed_policy_document(), "regions": ["${region}", "europe-west4"], **changes}
    return policy_from({**written, "admission": admission or {}}, NAMES)


def answer(
    written: Mapping[str, Any], *, under: Policy | None = None, prices: Prices = PRICES
) -> Request | Refused:
    """The result of parsing the request, with its estimate."""
    request_rules: RequestRules = replace(REQUEST_RULES, policy=under or policy())
    checked = checked_request(Document(value=dict(written), spelled={}), request_rules)
    return with_price(checked, request_rules.policy, lambda: prices)


def faults(written: Mapping[str, Any], *, under: Policy | None = None) -> dict[str, str]:
    """Each fault by its path."""
    found = instance_of(Refused, answer(written, under=under))
    return {fault.path: str(fault) for fault in found.faults}


def sound(written: Mapping[str, Any], *, under: Policy | None = None) -> Request:
    found = answer(written, under=under)
    assert isinstance(found, Request), [str(fault) for fault in found.faults]
    return found


def shipped_prices() -> dict[str, Any]:
    read = parse_document((ROOT / "functions" / "prices.yaml").read_bytes(), as_json=False)
    assert not read.faults
    assert isinstance(read.value, dict)
    return read.value
