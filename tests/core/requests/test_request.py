"""A request is read whole: a sound one becomes a job, a faulty one every fault with its path and repair."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.parsed import faults_of, sound_request, told
from tests.core.roles import TARGET
from trainmaster.orchestrator.core.requests.request import too_large
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

ROOT = Path(__file__).resolve().parents[3]
CASSAVA = (ROOT / "examples" / "cassava.yaml").read_text()


def test_the_example_becomes_the_job_it_describes() -> None:
    machine = {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    container = {
        "imageUri": "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest",
        "args": ["--dataset=cassava", "--epochs=2"],
    }
    pool = {"machineSpec": machine, "replicaCount": "1", "containerSpec": container}
    submission = submission_of("run-1", sound_request(CASSAVA).spec, TARGET)
    assert submission.parent == "projects/my-project/locations/us-central1"
    assert submission.body == {
        "displayName": "run-1",
        "labels": {
            "team": "agronomy",
            "trainmaster_run_id": "run-1",
            "trainmaster_model": "cassava-resnet50",
        },
        "jobSpec": {
            "workerPoolSpecs": [pool, pool],
            "baseOutputDirectory": {"outputUriPrefix": "gs://models/cassava-resnet50/run-1"},
            "scheduling": {"timeout": "86400s", "restartJobOnWorkerRestart": True},
        },
    }


def test_faults_of_text_schema_and_policy_come_in_one_report() -> None:
    faults = told(
        """
        model_name: Cassava
        image: docker.io/library/python
        args: --epochs=2
        epochs: 010
        env: {DEBUG: no, LEVEL: 3, TF_CONFIG: '{}'}
        cluster:
          chief: {machine: n1-standard-8, accelerator: {type: NVIDIA_TESLA_T5, count: 1}}
          workers: {machin: n1-standard-8, count: 99}
        """
    )
    assert list(faults) == [
        "$.args",
        "$.cluster.chief.accelerator.type",
        "$.cluster.workers.count",
        "$.cluster.workers.machin",
        "$.env.DEBUG",
        "$.env.LEVEL",
        "$.env.TF_CONFIG",
        "$.epochs",
        "$.image",
        "$.model_name",
    ]


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("clusster: {}", "$.clusster", "did you mean 'cluster'?"),
        ("model_name: no", "$.model_name", 'YAML 1.1 reads an unquoted no as false; quote it: "no"'),
        ("model_name: 12", "$.model_name", "found 12; allowed: lower-case letters"),
        ("labels: {year: 2026}", "$.labels.year", 'quote it: "2026"'),
        ("cluster: {chief: {gpu: 1}}", "$.cluster.chief.gpu", "found 1; allowed: a GPU and how many, for example L4:1"),
        ("cluster: {chief: {machine: n1-standard-4}, workers: 3}", "$.cluster.workers", "write workers: {count: 3, machine: …}"),
        ("args: --epochs=2", "$.args", "write a list"),
        ("env: {EPOCHS: 2}", "$.env.EPOCHS", 'quote it: "2"'),
        ("env: {PYVER: 3.10}", "$.env.PYVER", 'found 3.10; quote it: "3.10"'),
        ("scheduling: {spot: 'yes'}", "$.scheduling.spot", "write true or false, without quotes"),
        ("scheduling: {timeout_s: '60'}", "$.scheduling.timeout_s", "write 60 without quotes"),
        ("champion: {metric: a, goal: maximize, margin: '0.005'}", "$.champion.margin", "write 0.005 without quotes"),
        ("scheduling: {timeout_s: 1h}", "$.scheduling.timeout_s", "found '1h'; write seconds: 3600"),
        ("scheduling: {timeout_s: 1h 30min}", "$.scheduling.timeout_s", "write seconds: 5400"),
        ("scheduling: {timeout_s: 2 days}", "$.scheduling.timeout_s", "write seconds: 172800"),
        ("scheduling: {timeout_s: long}", "$.scheduling.timeout_s", "write seconds, for example 3600"),
        ("scheduling: {timeout_s: 0}", "$.scheduling.timeout_s", "too small"),
        ("scheduling: {timeout_s: 99999999}", "$.scheduling.timeout_s", "at most 604800"),
        ("labels: {Team: a}", "$.labels.Team", "not a valid name"),
        ("labels: {Team Name: a}", "$.labels['Team Name']", "write team-name"),
        ("labels: {branch: feature/x}", "$.labels.branch", "write feature-x"),
        ("labels: {version: v1.2.0}", "$.labels.version", "write v1-2-0"),
        ("labels: {owner: 'Jörg M.'}", "$.labels.owner", "write jörg-m"),
        ("labels: {trainmaster_run_id: a}", "$.labels.trainmaster_run_id", "reserved for the service"),
        ("labels: {team: A}", "$.labels.team", "found 'A'"),
        (f"labels: {{sha: {'A' * 70}}}", "$.labels.sha", f"write {'a' * 63}"),
        ("env: {'1A': x}", "$.env['1A']", "not beginning with a digit"),
        ("tensorboard: projects/p/locations/l/tensorboards/1", "$.service_account", "tensorboard needs it"),
        ("output: {prefix_uri: 'gs://inbox/requests'}", "$.output.prefix_uri", "gs://models"),
        ("output: {prefix_uri: 'gs://models-of-others/x'}", "$.output.prefix_uri", "gs://models"),
        ("output: {prefix_uri: 'gs://models/../inbox'}", "$.output.prefix_uri", "policy does not allow"),
        ("image: us-docker.pkg.dev/../../evil/x", "$.image", "not in the expected format"),
        ("image: 'us-docker.pkg.dev/my-project/r/i; rm -rf /'", "$.image", "not in the expected format"),
        ("network: default", "$.network", "projects/PROJECT_NUMBER/global/networks/NAME"),
        ("service_account: a@b.iam.gserviceaccount.com", "$.service_account", "my-project"),
        ("service_account: tm-on-tick@my-project.iam.gserviceaccount.com", "$.service_account", "*trainer@"),
        ("image: us-docker.pkg.dev/another-project/r/i", "$.image", "does not allow it"),
        ("cluster: {chief: {machine: g2-standard-4}}", "$.cluster.chief.accelerator", "NVIDIA_L4 (1)"),
        ("cluster: {chief: {machine: n1-standard-4}, workers: {machine: n1-standard-4, count: 0}}",
         "$.cluster.workers.count", "at least 1"),
    ],
)  # fmt: skip
def test_each_fault_names_its_place_and_its_repair(text: str, path: str, words: str) -> None:
    change: dict[str, Any] = yaml.safe_load(text)
    (key,) = change
    kept = {name: value for name, value in yaml.safe_load(CASSAVA).items() if name != key}
    assert words in told(yaml.safe_dump(kept) + text)[path]


@pytest.mark.parametrize("text", ["- a", "text", "12", "null"])
def test_a_document_that_is_not_a_mapping_is_refused(text: str) -> None:
    assert "a request must be a mapping" in told(text)["$"]


@pytest.mark.parametrize("rule", sorted((ROOT / "examples" / "rules").iterdir()), ids=lambda rule: rule.stem)
def test_a_rule_is_not_a_request_and_the_fault_says_where_rules_go(rule: Path) -> None:
    assert told(rule.read_text()) == {
        "$": "$: this is a retraining rule, not a request; copy it to rules/ in the inbox bucket"
    }


def test_a_request_with_a_condition_is_a_request_with_an_unknown_key() -> None:
    assert "unknown key 'when'" in told(f"{CASSAVA}\nwhen: []\n")["$.when"]


def test_a_request_may_have_the_size_of_the_limit_and_no_more() -> None:
    assert too_large(MAX_REQUEST_BYTES) is None
    assert "too large" in told(" " * (MAX_REQUEST_BYTES + 1))["$"]


LABELS = [
    "{team: ''}", "{größe: groß}", "{équipe: été}", "{a: 数据集}", "{數據: v-1_2}", "{a-1_b: '0'}", "{a: '-'}",
]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_google_takes_are_taken(labels: str) -> None:
    given = yaml.safe_load(labels)
    spec = sound_request(yaml.safe_dump({**yaml.safe_load(CASSAVA), "labels": given})).spec
    body: Any = submission_of("run-1", spec, TARGET).body
    assert given.items() <= body["labels"].items()


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_name", "tiny\n"), ("output", {"prefix_uri": "gs://models/x\n"}), ("labels", {"a\n": "b"})],
)
def test_a_line_end_after_a_name_is_refused(key: str, value: object) -> None:
    document = {**yaml.safe_load(CASSAVA), key: value}
    assert next(iter(faults_of(document))).startswith(f"$.{key}")
