"""The judge of requests and answers finds what the service would refuse, and its data says where it is from."""

import json
from typing import Any

import pytest

from tests.judges.discovery import FOLDER, api
from tests.judges.documents import METHODS
from tests.judges.transports import CLIENTS

SOUND: dict[str, Any] = {
    "displayName": "d",
    "maxTrialCount": 1,
    "parallelTrialCount": 1,
    "studySpec": {
        "metrics": [{"metricId": "m", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "p", "integerValueSpec": {"minValue": "1", "maxValue": "2"}}],
    },
    "trialJobSpec": {
        "workerPoolSpecs": [{"replicaCount": "1", "machineSpec": {"acceleratorCount": 1}}],
        "scheduling": {"timeout": "3600s"},
    },
}
URL = "/v1/projects/p/locations/r/hyperparameterTuningJobs"


def changed(path: str, value: object) -> dict[str, Any]:
    """SOUND with this value at the path, or without it for None."""
    body = json.loads(json.dumps(SOUND))
    *parents, last = path.split(".")
    place = body
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return dict(body)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("maxTrials", 1, "'maxTrials' was unexpected"),
        ("display_name", "x", "'display_name' was unexpected"),
        ("state", "JOB_STATE_FAILED", "'state' was unexpected"),
        ("displayName", None, "'displayName' is a required property"),
        ("studySpec.metrics.0.goal", "LARGER", "'LARGER' is not one of"),
        ("studySpec.parameters.0.integerValueSpec.minValue", 1.5, "1.5 is not of type 'string', 'integer'"),
        ("studySpec.parameters.0.integerValueSpec.minValue", "1.0", "'1.0' does not match"),
        ("studySpec.parameters.0.integerValueSpec.minValue", None, "'minValue' is a required property"),
        ("trialJobSpec.workerPoolSpecs.0.machineSpec.acceleratorCount", 2**31, "2147483648 is greater"),
        ("trialJobSpec.workerPoolSpecs.0.machineSpec.acceleratorCount", "1", "'1' is not of type 'integer'"),
        ("trialJobSpec.scheduling.timeout", "1h", "'1h' does not match"),
        ("trialJobSpec.workerPoolSpecs", {}, "{} is not of type 'array'"),
        ("labels", {"a": 1}, "1 is not of type 'string'"),
    ],
)
def test_what_the_service_refuses_is_a_fault_with_its_place(path: str, value: object, words: str) -> None:
    (fault,) = api("aiplatform.v1").request_faults("POST", URL, changed(path, value))
    assert words in fault


@pytest.mark.parametrize(
    ("verb", "url", "body", "words"),
    [
        ("PUT", URL, SOUND, "no method PUT"),
        ("POST", f"{URL}/1:stop", None, "no method POST"),
        ("GET", f"{URL}?pageSize=x", None, "'x' is not of type 'integer'"),
        ("GET", f"{URL}?page_size=1", None, "unknown parameter page_size=1"),
        ("GET", f"{URL}/1", {"a": 1}, "takes no body"),
    ],
)
def test_a_route_and_a_query_are_judged_too(verb: str, url: str, body: object, words: str) -> None:
    (fault,) = api("aiplatform.v1").request_faults(verb, url, body)
    assert words in fault


def test_an_answer_may_hold_what_the_service_alone_writes_and_lack_numbers_that_are_zero() -> None:
    answer = changed("parallelTrialCount", None) | {
        "state": "JOB_STATE_FAILED",
        "createTime": "2026-01-01T00:00:00.5Z",
    }
    assert api("aiplatform.v1").answer_faults("GET", f"{URL}/1", answer) == []
    for key, value in (("createTime", "2026-01-01 00:00"), ("error", {"code": "1"}), ("name", 1)):
        assert len(api("aiplatform.v1").answer_faults("GET", f"{URL}/1", answer | {key: value})) == 1


def test_64_bit_integers_are_texts_in_answers_alone() -> None:
    body = changed("studySpec.parameters.0.integerValueSpec.minValue", 1)
    assert api("aiplatform.v1").request_faults("POST", URL, body) == []
    (fault,) = api("aiplatform.v1").answer_faults("GET", f"{URL}/1", body)
    assert "1 is not of type 'string'" in fault


AGENTS = "/v1/projects/1/locations/global/serviceProducers/aiplatform.googleapis.com"


@pytest.mark.parametrize(
    ("verb", "path"), [("GET", f"{AGENTS}:generateServiceAgents"), ("POST", f"{AGENTS}:generate")]
)
def test_a_method_that_a_client_lacks_is_a_fault(verb: str, path: str) -> None:
    assert api("workloadidentity.v1").request_faults("POST", f"{AGENTS}:generateServiceAgents") == []
    (fault,) = api("workloadidentity.v1").request_faults(verb, path)
    assert fault == f"workloadidentity.v1 has no method {verb} {path}"


OTHERS = {"provider": "pulumi-gcp==", "routes": "google-api-python-client=="}


def test_there_is_one_file_for_each_api_and_one_for_the_provider() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*METHODS, *CLIENTS, *OTHERS}


@pytest.mark.parametrize("name", [*CLIENTS, *METHODS, *OTHERS])
def test_the_data_names_its_source_licence_date_and_renewal(name: str) -> None:
    document = api(name).document
    wanted = CLIENTS[name][0] if name in CLIENTS else OTHERS.get(name, "google-api-python-client==")
    assert document["source"].startswith(wanted)
    assert document["licence"] == "Apache-2.0"
    assert name not in METHODS or document["revision"].isdigit()
    assert document["date"] >= "2026-11"
    assert document["renew"] == "python -m tests.judges.renew"
