"""The shipped policy is a legal one, and its patterns mean what they say."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType

from tests.core.admission_cases import document, faults, policy, sound
from tests.core.roles import MACHINE, ONE, OTHER, PACKAGE, T4, accepted, cluster, request, told
from tests.core.shipped import NAMES, assert_valid, policy_document, schema
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.policy.checks import policy_faults
from trainmaster.orchestrator.core.policy.console import may_act
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.policy.teams import policy_of

STORE = "projects/p/locations/*/metadataStores/default"
POLICY = policy_from(policy_document(), NAMES)


def test_the_shipped_policy_is_as_its_schema_says() -> None:
    assert_valid(policy_document(), "policy.v1")


def test_the_shipped_policy_names_only_accelerators_that_the_service_has() -> None:
    named = {name for row in POLICY.machines for name in row.accelerators or {}}
    assert named <= set(AcceleratorType.__members__)


def test_no_machine_type_stands_in_two_rows() -> None:
    every = [name for row in POLICY.machines for name in row.types]
    assert len(every) == len(set(every))


def test_an_unknown_name_in_a_pattern_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"\$\{tenant\}.*allowed: inbox_bucket, models_bucket, prefix, project, region"
    ):
        policy_from({**policy_document(), "images": ["${tenant}/**"]}, NAMES)


def test_a_misspelt_choice_beside_one_that_is_no_text_gets_the_nearest_word() -> None:
    """YAML reads `off` as false, so the schema's choices of `registry.mode` have both."""
    faults_found = schema_faults(schema("policy.v1"), {**policy_document(), "registry": {"mode": "champion"}})
    repairs = [(fault.path, fault.repair) for fault in faults_found]
    assert repairs == [("$.registry.mode", "did you mean 'champions'?")]


def test_a_waste_that_looks_for_nothing_gets_the_keys_of_which_it_needs_one() -> None:
    found = schema_faults(schema("policy.v1"), {**policy_document(), "waste": {"then": "cancel"}})
    assert [(fault.path, fault.allowed) for fault in found] == [
        ("$.waste", "min_gpu_percent, silent_s, or both")
    ]
    assert found[0].repair.startswith("write min_gpu_percent: 10")


KEYS = "projects/my-project/locations/us-central1/keyRings"


def package(*uris: str) -> Mapping[str, Any]:
    return {"image": None, "python_package": {**PACKAGE, "uris": list(uris)}}


def chief(machine: str, **more: Any) -> Mapping[str, Any]:
    return {"cluster": {"chief": {"machine": machine, **more}}}


def workers(**more: Any) -> Mapping[str, Any]:
    return {"cluster": cluster(workers={**ONE, **more})}


def mounted(server: str) -> Mapping[str, Any]:
    mount = {"server": server, "path": "/a", "mount_point": "a"}
    return {
        "network": "projects/1/global/networks/n",
        "cluster": {"chief": {**MACHINE, "nfs_mounts": [mount]}},
    }


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"image": "evil.example/x"}, "$.image", "*-docker.pkg.dev/my-project/**"),
        (workers(image="evil.example/x"), "$.cluster.workers.image", "*-docker.pkg.dev/my-project/**"),
        (
            {"cluster": cluster(evaluators={**ONE, "image": "us-docker.pkg.dev/../evil/x"})},
            "$.cluster.evaluators.image",
            "not in the expected format",
        ),
        (
            {"image": None, "python_package": {**PACKAGE, "executor_image": OTHER}},
            "$.python_package.executor_image",
            "us-docker.pkg.dev/vertex-ai/training/*",
        ),
        (
            package("gs://my-project-data/a", "gs://else/b"),
            "$.python_package.uris[1]",
            "allowed: gs://my-project-data",
        ),
        (package("gs://my-project-data/../else/b"), "$.python_package.uris[0]", "does not allow"),
        (package("gs://my-project-data-of-others/b"), "$.python_package.uris[0]", "does not allow"),
        (
            workers(python_package={**PACKAGE, "uris": ["gs://models/m/a"]}),
            "$.cluster.workers.python_package.uris[0]",
            "package_prefixes",
        ),
        (
            {"cluster": cluster(parameter_servers={**ONE, "env": {"TF_CONFIG": "{}"}}, workers=ONE)},
            "$.cluster.parameter_servers.env.TF_CONFIG",
            "this service sets it",
        ),
        (
            {"cluster": {"chief": {**MACHINE, "env": {"TRAINMASTER_REPLICA_ENVIRONMENT": "x"}}}},
            "$.cluster.chief.env.TRAINMASTER_REPLICA_ENVIRONMENT",
            "this service sets it",
        ),
        (
            {"cluster": cluster(evaluators={**MACHINE, "machine": "n1-standard-5", "count": 1})},
            "$.cluster.evaluators.machine",
            "did you mean 'n1-standard-",
        ),
        (
            workers(accelerator={"type": "NVIDIA_L4", "count": 1}),
            "$.cluster.workers.accelerator.type",
            "n1-standard-4 does not support it",
        ),
        (workers(accelerator={**T4, "count": 3}), "$.cluster.workers.accelerator.count", "allowed: 1, 2, 4"),
        (workers(tpu_topology="2x2"), "$.cluster.workers.tpu_topology", "remove it"),
        (chief("ct5lp-hightpu-4t"), "$.cluster.chief.tpu_topology", "2x2, 2x4, 4x4"),
        (chief("ct5lp-hightpu-8t", tpu_topology="2x2"), "$.cluster.chief.tpu_topology", "allowed: 2x4"),
        (
            chief(
                "ct5lp-hightpu-8t",
                tpu_topology="2x4",
                accelerator={"type": "TPU_V5_LITEPOD", "count": 8},
            ),
            "$.cluster.chief.accelerator.type",
            "tpu_topology already sets the number of chips",
        ),
        (chief("cloud-tpu"), "$.cluster.chief.accelerator", "TPU_V2 (8, 32"),
        (
            {"cluster": cluster(workers={**ONE, "count": 20}, evaluators={**ONE, "count": 12})},
            "$.cluster.workers.count",
            "the cluster has 33; remove 1",
        ),
        ({"web_access": True}, "$.web_access", "allowed: false"),
        ({"dashboard_access": True}, "$.dashboard_access", "allowed: false"),
        (
            {"encryption_key": KEYS.replace("my-project", "other") + "/r/cryptoKeys/k"},
            "$.encryption_key",
            KEYS,
        ),
        ({"persistent_resource": "theirs"}, "$.persistent_resource", "allowed: none"),
        ({"protected_artifact_location_id": "eu"}, "$.protected_artifact_location_id", "us-central1"),
        (mounted("8.8.8.8"), "$.cluster.chief.nfs_mounts[0].server", "an IP address in 10.0.0.0/8"),
        (mounted("nfs.example"), "$.cluster.chief.nfs_mounts[0].server", "an IP address in 10.0.0.0/8"),
    ],
)
def test_what_the_policy_forbids_is_refused_in_all_roles(
    changes: Mapping[str, Any], path: str, words: str
) -> None:
    faults = told(request(**changes))
    assert list(faults) == [path]
    assert words in str(faults[path])


FOREIGN: Mapping[str, Any] = {
    "network": "projects/666/global/networks/n",
    "tensorboard": "projects/evil/locations/us-central1/tensorboards/1",
    "experiment": "projects/evil/locations/us-central1/metadataStores/default/contexts/e",
    "encryption_key": "projects/evil/locations/us-central1/keyRings/r/cryptoKeys/k",
    "service_account": "trainer@evil.iam.gserviceaccount.com",
    "persistent_resource": "reserved-by-another-team",
}
INTERFACE = {"network_attachment": "projects/evil/regions/us-central1/networkAttachments/a"}
RESERVED = {
    "reservation_affinity_type": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/evil/zones/us-central1-a/reservations/r"],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"psc_interface_config": INTERFACE},
        workers(reservation_affinity=RESERVED),
        workers(reservation_affinity={"reservation_affinity_type": "ANY_RESERVATION"}),
    ],
)
def test_what_others_pay_for_or_keep_apart_is_allowed_by_its_name_alone(changes: Mapping[str, Any]) -> None:
    own, named = ("projects/my-project/**",), ("projects/evil/**", "ANY_RESERVATION")
    (fault,) = told(request(**changes), network_attachments=own, reservations=own).values()
    assert fault.repair.startswith("ask for it to be added to ")
    accepted(request(**changes), network_attachments=named, reservations=named)


def test_no_machine_is_suggested_for_a_name_that_resembles_none() -> None:
    fault = told(request(**chief("z9-mega-1")))["$.cluster.chief.machine"]
    assert not fault.repair
    assert "e2-standard-4" in fault.allowed


@pytest.mark.parametrize("key", FOREIGN)
def test_what_belongs_to_another_project_is_refused_in_requests_and_fallbacks(key: str) -> None:
    shipped = {"networks": POLICY.networks}
    account = {"service_account": "trainer@my-project.iam.gserviceaccount.com"}
    whole = request(**{**account, key: FOREIGN[key]})
    assert "does not allow" in told(whole, **shipped)[f"$.{key}"].problem


def test_a_run_of_another_projects_experiment_is_refused() -> None:
    own = "projects/my-project/locations/us-central1/metadataStores/default/contexts"
    written = request(experiment=f"{own}/e", experiment_run=f"{FOREIGN['experiment']}-1")
    assert list(told(written)) == ["$.experiment_run"]


def test_an_experiment_by_its_name_alone_is_the_projects_own() -> None:
    assert accepted(request(experiment="cats")).spec.experiment == "cats"
    assert list(told(request(experiment="cats"), experiments=())) == ["$.experiment"]
    assert list(told(request(experiment="cat"))) == ["$.experiment"]


def test_a_resource_that_names_the_own_project_by_its_number_gets_the_repair() -> None:
    account = "trainer@my-project.iam.gserviceaccount.com"
    board = "projects/123456/locations/us-central1/tensorboards/1"
    fault = told(request(tensorboard=board, service_account=account))["$.tensorboard"]
    assert fault.repair == "name the project by its id, not by its number"


@pytest.mark.parametrize(
    "changes",
    [
        {"web_access": False, "dashboard_access": False},
        {"encryption_key": f"{KEYS}/r/cryptoKeys/k"},
        {"network": "projects/1/global/networks/n", "reserved_ip_ranges": ["any"]},
        {"image": None, "python_package": PACKAGE},
        {"cluster": cluster(workers={**ONE, "count": 19}, evaluators={**ONE, "count": 12})},
    ],
)
def test_what_the_policy_gives_is_accepted(changes: Mapping[str, Any]) -> None:
    accepted(request(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"web_access": True},
        {"image": None, "python_package": PACKAGE},
        {"network": "projects/1/global/networks/n", "reserved_ip_ranges": ["any"]},
    ],
)
def test_what_an_older_policy_file_does_not_mention_is_refused(changes: Mapping[str, Any]) -> None:
    known = ("executor_images", "package_prefixes", "reserved_ip_ranges", "web_access")
    older = policy_from({key: value for key, value in policy_document().items() if key not in known}, NAMES)
    policy = {key: getattr(older, key) for key in known}
    assert all("does not allow" in fault.problem for fault in told(request(**changes), **policy).values())


def test_an_older_policy_file_takes_the_images_of_containers_for_executors() -> None:
    package = {**PACKAGE, "executor_image": OTHER}
    accepted(request(image=None, python_package=package), executor_images=None)


def test_a_policy_with_an_invalid_network_of_servers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/99"):
        policy_from({**policy_document(), "nfs_servers": ["10.0.0.0/99"]}, NAMES)


def test_the_shipped_policy_has_topologies_of_as_many_chips_as_whole_machines() -> None:
    """`ct5lp-hightpu-4t` has four chips: every arrangement of it is a multiple."""
    for row in POLICY.machines:
        for machine, topology in itertools.product(row.types, row.tpu_topologies):
            chips = int(machine.removesuffix("t").rpartition("-")[2])
            assert math.prod(map(int, topology.split("x"))) % chips == 0, (machine, topology)


def test_the_policy_bounds_the_priority_that_requests_may_ask_for() -> None:
    bounded = policy({"max_priority": 70})
    assert "at most 70" in faults(document(priority=71), under=bounded)["$.priority"]
    sound(document(priority=70), under=bounded)
    sound(document(), under=bounded)
    sound(document(priority=100))


def test_the_policy_bounds_the_retries_that_requests_may_ask_for() -> None:
    bounded = policy({"max_retries": 1})
    assert "at most 1" in faults(document(scheduling={"retries": 2}), under=bounded)["$.scheduling.retries"]
    sound(document(scheduling={"retries": 1, "retry_on": ["preemption"]}), under=bounded)
    found = faults(document(scheduling={"retries": 4, "retry_on": ["oom"]}))
    assert sorted(found) == ["$.scheduling.retries", "$.scheduling.retry_on[0]"]
    assert list(faults(document(scheduling={"retry_on": ["preemption"]}))) == ["$.scheduling.retries"]


def test_a_request_without_a_label_that_the_policy_wants_is_refused() -> None:
    wants = policy({"required_labels": ["team"]})
    for labels in ({"tier": "a"}, {"team": ""}):
        assert list(faults(document(labels=labels), under=wants)) == ["$.labels.team"]
    sound(document(labels={"team": "blue"}), under=wants)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"regions": ["*"]}, "$.regions[0]"),
        ({"regions": ["${region}", "europe-*"]}, "$.regions[1]"),
        ({"admission": {"max_priority": 49}}, "$.admission.max_priority"),
        ({"experiments": ["**", "Bad Name"]}, "$.experiments[1]"),
        ({"experiments": [f"{STORE}/contexts/*", f"{STORE}/contexts/My_run"]}, "$.experiments[1]"),
        ({"registry": {"mode": "all", "serving": "docker.io/x"}}, "$.registry.serving"),
        ({"registry": {"mode": "all", "serving": {"torch": "docker.io/x"}}}, "$.registry.serving.torch"),
        ({"admission": {"required_labels": ["Team"]}}, "$.admission.required_labels[0]"),
    ],
)
def test_a_policy_that_says_what_cannot_hold_is_refused(change: Mapping[str, Any], path: str) -> None:
    assert [fault.path for fault in schema_faults(schema("policy.v1"), {**policy_document(), **change})] == [
        path
    ]


def test_every_fault_of_the_pools_is_said_at_once() -> None:
    row = {"id": "p", "region": "us-central1", "machine": "n1-standard-4", "count": 1}
    pools = [
        row,
        {**row, "teams": ["sales"]},
        {**row, "id": "o", "region": "mars", "machine": "big"},
        {**row, "id": "q", "accelerator": {"type": "NVIDIA_L4", "count": 3}},
    ]
    assert [
        (fault.path, fault.problem) for fault in policy_faults({**policy_document(), "pools": pools}, NAMES)
    ] == [
        ("$.pools[1].id", "p is there twice"),
        ("$.pools[1].teams", "the policy's teams lack sales"),
        ("$.pools[2].machine", "the policy's machines lack big"),
        ("$.pools[2].region", "the policy's regions lack mars"),
        ("$.pools[3].accelerator", "the policy's machines lack 3 NVIDIA_L4"),
    ]


def test_people_act_for_the_teams_of_their_address_and_domain() -> None:
    people = {
        "user:Ada@example.com": ["vision"],
        "domain:example.com": ["nlp"],
        "user:bob@example.org": ["*"],
    }
    document = {**policy_document(), "teams": {"vision": {}, "nlp": {}}, "console": {"people": people}}
    assert not list(schema_faults(schema("policy.v1"), document))
    console = policy_from(document, NAMES).console
    assert console.teams_of("ada@example.com", "example.com") == {"vision", "nlp"}
    assert console.teams_of("ada@example.com", "") == {"vision"}
    assert console.teams_of("eve@example.org", "") == set()
    assert [may_act(console.teams_of("bob@example.org", ""), team) for team in ("nlp", None)] == [True, True]
    assert [may_act({"nlp"}, team) for team in ("nlp", "vision", None)] == [True, False, False]


def test_every_unknown_team_of_people_is_said_with_its_place() -> None:
    people = {"user:ada@example.com": ["vision", "visoin"], "domain:example.com": ["sales"]}
    document = {**policy_document(), "teams": {"vision": {}}, "console": {"people": people}}
    with pytest.raises(ValueError, match="console") as wrong:
        policy_from(document, NAMES)
    assert str(wrong.value).split("; allowed: vision, *")[:2] == [
        "$.console.people['domain:example.com']: the policy's teams lack sales",
        "; $.console.people['user:ada@example.com']: the policy's teams lack visoin",
    ]
    forms = {form: ["*"] for form in ("ada@example.com", "group:a@example.com", "domain:a@b.c", "user:ada")}
    faults = schema_faults(schema("policy.v1"), {**policy_document(), "console": {"people": forms}})
    assert len(list(faults)) == len(forms)


def test_a_pool_may_be_named_by_its_teams_alone() -> None:
    row = {"region": "us-central1", "machine": "n1-standard-4", "count": 1}
    pools = [{**row, "id": "ours", "teams": ["vision"]}, {**row, "id": "for-all"}]
    document = {**policy_document(), "pools": pools, "teams": {"vision": {}, "speech": {}}}
    policy = policy_from(document, NAMES)
    assert [one.id for one in policy_of(policy, "vision").pools] == ["ours", "for-all"]
    assert [one.id for one in policy_of(policy, "speech").pools] == ["for-all"]
    accepted(request(persistent_resource="ours"), pools=policy_of(policy, "vision").pools)


def test_an_evaluation_needs_a_machine_of_the_policy() -> None:
    with pytest.raises(ValueError, match=r"evaluation\.machine: the policy's machines lack a9-huge"):
        policy_from({**policy_document(), "evaluation": {"machine": "a9-huge"}}, NAMES)


def test_faults_beside_the_schemas_come_with_them_but_for_what_those_may_cause() -> None:
    pool = {"id": "p", "region": "mars", "machine": "big", "count": "1"}
    changes = {"nfs_servers": ["10.0.0.0/99", "${net}"], "pools": [pool], "web_access": "no", "machine": []}
    written = {**policy_document(), **changes, "evaluation": {"machine": "big", "timeout_s": 1}}
    del written["machines"]
    refused = schema_faults(schema("policy.v1"), written)
    assert {fault.path for fault in refused} == {
        "$.machine", "$.pools[0].count", "$.web_access", "$.evaluation.timeout_s"
    }  # fmt: skip
    assert [fault.path for fault in policy_faults(written, NAMES, refused)] == [
        "$.nfs_servers[0]", "$.nfs_servers[1]", "$.pools[0].region"
    ]  # fmt: skip
