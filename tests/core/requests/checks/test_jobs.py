"""Contradicting settings, arguments without a reader, and values beyond the service's limits are refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.roles import L4, MACHINE, ONE, OTHER, PACKAGE, T4, TUNING, accepted, cluster, request, told

NFS = [{"server": "10.0.0.1", "path": "/a", "mount_point": "a"}]
PACKAGED = {**MACHINE, "python_package": PACKAGE}
IMAGED = {**MACHINE, "image": OTHER}
TPU = {"machine": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}
SMALL_TPU = {"machine": "ct5lp-hightpu-1t", "tpu_topology": "1x1"}
OLD_TPU = {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V2", "count": 8}, "count": 1}
NETWORK = "projects/123/global/networks/training"
CONTEXTS = "projects/my-project/locations/us-central1/metadataStores/default/contexts"
LEARNING_RATE: dict[str, Any] = {"type": "double", "min": 0.1, "max": 0.2}
SAFE = {"threshold": 0.5}
H100: dict[str, Any] = {"machine": "a3-highgpu-1g", "accelerator": {"type": "NVIDIA_H100_80GB", "count": 1}}
RESERVED = {
    "reservation_affinity_type": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/my-project/zones/us-central1-a/reservations/h100"],
}
LUSTRE = {"instance_ip": "10.0.0.9", "volume_handle": "v", "filesystem": "fs", "mount_point": "a"}


def of(chief: object, **roles: object) -> dict[str, Any]:
    return {"cluster": {"chief": chief, **roles}}


def flex(**scheduling: object) -> dict[str, Any]:
    return {"scheduling": {"flex_start": True, **scheduling}}


def stop(**when: object) -> dict[str, Any]:
    return {"tuning": {**TUNING, "stop_study": when}}


def env(prefix: str, count: int) -> dict[str, Any]:
    return {"env": {f"{prefix}{number}": "" for number in range(count)}}


def tuned(**changes: Any) -> dict[str, Any]:
    return {"tuning": {**TUNING, **changes}}


def chosen(*conditions: tuple[list[str], str]) -> dict[str, Any]:
    """A parameter with one child for each of the conditions."""
    return {
        "type": "categorical",
        "values": ["adam", "sgd"],
        "conditional": [{"when": when, "parameters": {name: LEARNING_RATE}} for when, name in conditions],
    }


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {"scheduling": {"restart_on_worker_restart": True, "disable_retries": True}},
            "$.scheduling.restart_on_worker_restart",
            "remove one of the two",
        ),
        ({**flex(spot=True), **of(L4)}, "$.scheduling.spot", "remove one of the two"),
        ({"scheduling": {"max_wait_s": 60}}, "$.scheduling.max_wait_s", "flex_start: true"),
        ({"scheduling": {"start_within_s": -1}}, "$.scheduling.start_within_s", "too small"),
        ({"scheduling": {"start_within_s": "2h"}}, "$.scheduling.start_within_s", "integer"),
        (flex(flex_start=False, max_wait_s=60), "$.scheduling.max_wait_s", "flex_start: true"),
        (flex(), "$.cluster.chief.machine", "NVIDIA_L4, NVIDIA_TESLA_A100"),
        (
            {**flex(), **of({**MACHINE, "accelerator": T4})},
            "$.cluster.chief.accelerator.type",
            "works only with these GPUs",
        ),
        (
            {**flex(), **of(L4, workers={**L4, "machine": "g2-standard-8", "count": 1})},
            "$.cluster.workers.machine",
            "the chief's, 'g2-standard-4'",
        ),
        ({**flex(timeout_s=604801), **of(L4)}, "$.scheduling.timeout_s", "at most 7 days"),
        (of({**MACHINE, "nfs_mounts": NFS}), "$.cluster.chief.nfs_mounts", "write network"),
        ({"reserved_ip_ranges": ["r"]}, "$.reserved_ip_ranges", "write network"),
        (of({**MACHINE, "lustre_mounts": [LUSTRE]}), "$.cluster.chief.lustre_mounts", "write network"),
        (
            of({**MACHINE, "lustre_mounts": LUSTRE}),
            "$.cluster.chief.lustre_mounts",
            "or psc_interface_config: {",
        ),
        ({"scheduling": {"retry": 1}}, "$.scheduling.retry", "did you mean 'retries'?"),
        (
            of({**L4, "gpu_partition_size": "1g.10gb"}),
            "$.cluster.chief.accelerator.type",
            "gpu_partition_size is for GPUs that can be split; found 'NVIDIA_L4'; allowed: NVIDIA_TESLA_A100, ",
        ),
        (
            of({**MACHINE, "gpu_partition_size": "1g.10gb"}),
            "$.cluster.chief.accelerator",
            "missing: gpu_partition_size needs it",
        ),
        *(
            (
                {**unfit, **of({**H100, "reservation_affinity": RESERVED})},
                "$.cluster.chief.reservation_affinity.reservation_affinity_type",
                "allowed: NO_RESERVATION; remove reservation_affinity, or " + key,
            )
            for key, unfit in (("spot", {"scheduling": {"spot": True}}), ("flex_start", flex()))
        ),
        (
            {
                **of({**H100, "reservation_affinity": RESERVED}),
                "fallbacks": [{"scheduling": {"spot": True}}],
            },
            "$.fallbacks[0].cluster.chief.reservation_affinity.reservation_affinity_type",
            "a job with spot cannot use reserved machines",
        ),
        (
            {"image": None, "python_package": PACKAGE, "cluster": cluster(workers={**ONE, "command": ["a"]})},
            "$.cluster.workers.command",
            "cluster.workers.image",
        ),
        (
            {"image": None, "command": ["a"], **of(PACKAGED, workers=ONE)},
            "$.command",
            "started by its module",
        ),
        (of(IMAGED), "$.image", "remove it"),
        ({"image": None, "args": ["--a"], **of(IMAGED)}, "$.args", "cluster.chief.args"),
        ({"args": ["x" * 60_000, "y" * 60_000]}, "$.args", "at most 100000 characters"),
        (
            {**env("A", 60), "cluster": cluster(workers={**ONE, **env("B", 41)})},
            "$.cluster.workers.env",
            "at most 100",
        ),
        (
            {**env("A", 100), "cluster": cluster(replica_environment="ai_platform")},
            "$.env",
            "one of them for replica_environment",
        ),
        (of(TPU, workers=ONE), "$.cluster.chief.machine", "beside workers"),
        (of(MACHINE, workers=OLD_TPU), "$.cluster.workers.machine", "remove the other roles"),
        ({"tuning": TUNING, **of(SMALL_TPU)}, "$.cluster.chief.machine", "cannot use TPUs"),
        (
            {"tuning": TUNING, **of({**MACHINE, "args": ["--learning_rate=1"]})},
            "$.tuning.parameters.learning_rate",
            "remove --learning_rate from $.cluster.chief.args",
        ),
        (
            stop(max_end_time="2026-02-30T00:00:00Z"),
            "$.tuning.stop_study.max_end_time",
            "the month does not have this day",
        ),
        (stop(min_end_time="2026-13-01T00:00:00Z"), "$.tuning.stop_study.min_end_time", "a time in UTC"),
        (stop(max_runtime_s=315576000001), "$.tuning.stop_study.max_runtime_s", "too large"),
        (
            tuned(metrics=[{"id": "val accuracy", "goal": "maximize"}]),
            "$.tuning.metrics[0].id",
            "without white space; write '_' for each space",
        ),
        (
            tuned(metrics=[{"id": "loss", "goal": "minimize", "safety": SAFE}]),
            "$.tuning.metrics",
            "add the metric to optimize",
        ),
        (
            tuned(early_stopping={"rule": "convex", "learning_rate_parameter": "learning_rat"}),
            "$.tuning.early_stopping.learning_rate_parameter",
            "did you mean 'learning_rate'?",
        ),
        (
            tuned(parameters={"rate": LEARNING_RATE, "by": chosen((["adam"], "rate"))}),
            "$.tuning.parameters.by.conditional[0].parameters.rate",
            "give each a unique name",
        ),
        (
            tuned(parameters={"by": chosen((["adam"], "rate"), (["sgd", "adam"], "rate"))}),
            "$.tuning.parameters.by.conditional[1].parameters.rate",
            "appears twice",
        ),
        ({"network": "projects/my-project/global/networks/n"}, "$.network", "gcloud projects describe"),
        ({"network": "projects/123/global/networks/N_1"}, "$.network", "networks/NAME"),
        ({"network": NETWORK, "reserved_ip_ranges": ["A b"]}, "$.reserved_ip_ranges[0]", "lower-case"),
        ({"persistent_resource": "team-"}, "$.persistent_resource", "not ending with '-'"),
        ({"experiment": f"{CONTEXTS}/e", "experiment_run": "a b"}, "$.experiment_run", "EXPERIMENT-RUN"),
        ({"scheduling": {"timeout_s": 10**18}}, "$.scheduling.timeout_s", "too large"),
        ({"image": "us-central1-docker.pkg.dev/my-project/Other/Image:v1"}, "$.image", "lower-case letters"),
        ({"image": f"{OTHER}:v1:v2"}, "$.image", "with :tag"),
        ({"env": {"A": "\0"}}, "$.env.A", "a character that is not allowed"),
        (
            {"args": ["x" * 60_000], "cluster": cluster(workers={**ONE, "args": ["y" * 60_000]})},
            "$.args",
            "120000 characters in the commands and arguments of all roles",
        ),
        ({"command": ["x" * 100_001]}, "$.command", "at most 100000 characters"),
    ],
)
def test_each_fault_names_its_place_and_its_repair(changes: Mapping[str, Any], path: str, words: str) -> None:
    faults = told(request(**changes))
    assert path in faults
    assert words in str(faults[path])


def test_a_parameter_may_have_a_specification_for_each_value_of_its_parent() -> None:
    accepted(request(**tuned(parameters={"by": chosen((["adam"], "rate"), (["sgd"], "rate"))})))


def test_a_run_of_an_experiment_is_submitted_by_its_full_name() -> None:
    by_id = accepted(request(experiment=f"{CONTEXTS}/nightly", experiment_run="7")).spec
    by_name = accepted(request(experiment=f"{CONTEXTS}/nightly", experiment_run=f"{CONTEXTS}/nightly-7")).spec
    assert by_id == by_name
    assert by_id.settings["experiment_run"] == f"{CONTEXTS}/nightly-7"


def test_an_experiment_by_its_name_alone_is_no_setting_of_the_job() -> None:
    spec = accepted(request(experiment="nightly")).spec
    assert (spec.experiment, "experiment" in spec.settings) == ("nightly", False)
    assert accepted(request(experiment=f"{CONTEXTS}/nightly")).spec.experiment is None
    assert told(request(experiment="nightly", experiment_run="7")).keys() == {"$.experiment"}


def test_all_faults_of_what_is_reserved_and_reached_come_at_once() -> None:
    chief = {
        **H100,
        "gpu_partition_size": "half",
        "reservation_affinity": {"reservation_affinity_type": "specific", "values": []},
        "lustre_mounts": [{"instance_ip": "lustre.example", "mount_point": "a/b", "server": "x"}],
    }
    peering = {"domain": "*.corp", "target_project": "P", "network": "shared"}
    names, spare = {"key": "k", "values": RESERVED["values"]}, {**H100, "count": 1}
    roles = {
        "workers": {**spare, "reservation_affinity": {"reservation_affinity_type": "SPECIFIC_RESERVATION"}},
        "evaluators": {
            **spare,
            "reservation_affinity": {"reservation_affinity_type": "ANY_RESERVATION", **names},
        },
    }
    written = request(
        **of(chief, **roles),
        psc_interface_config={"network_attachment": "Training", "dns_peering_configs": [peering]},
        models=["champion", 3],
        protected_artifact_location_id="mars",
    )
    expected = {
        "cluster.chief.gpu_partition_size": "for example 1g.10gb",
        "cluster.chief.lustre_mounts[0].filesystem": "missing",
        "cluster.chief.lustre_mounts[0].instance_ip": "an IP address in 10.0.0.0/8",
        "cluster.chief.lustre_mounts[0].mount_point": "letters, digits",
        "cluster.chief.lustre_mounts[0].server": "unknown key",
        "cluster.chief.lustre_mounts[0].volume_handle": "missing",
        "cluster.chief.reservation_affinity.reservation_affinity_type": "did you mean 'SPECIFIC_RESERVATION'?",
        "cluster.chief.reservation_affinity.values": "at least 1 entry",
        "cluster.evaluators.reservation_affinity.key": "only SPECIFIC_RESERVATION names reservations",
        "cluster.evaluators.reservation_affinity.values": "only SPECIFIC_RESERVATION names reservations",
        "cluster.workers.reservation_affinity.key": "compute.googleapis.com/reservation-name",
        "cluster.workers.reservation_affinity.values": "missing: SPECIFIC_RESERVATION needs it",
        "models[0]": "projects/PROJECT/locations/REGION/models/MODEL",
        "models[1]": "expected a string",
        "protected_artifact_location_id": "the policy does not allow it",
        "psc_interface_config.dns_peering_configs[0].domain": "end it with a dot",
        "psc_interface_config.dns_peering_configs[0].network": "did you mean 'target_network'?",
        "psc_interface_config.dns_peering_configs[0].target_project": "the id of the project",
        "psc_interface_config.network_attachment": "networkAttachments/NAME",
    }
    found = {path.removeprefix("$."): str(fault) for path, fault in told(written).items()}
    assert found.keys() == expected.keys()
    assert all(words in found[path] for path, words in expected.items()), found


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"image": None, "cluster": [{"chief": {**MACHINE, "image": OTHER}}]}, ["cluster"]),
        ({"image": None, "cluster": {"chief": [{**MACHINE, "image": OTHER}]}}, ["cluster.chief"]),
        ({"image": None, "cluster": [{"chief": {**MACHINE, "image": OTHER}}, {"workers": ONE}]}, ["cluster"]),
        (
            {"cluster": [{"chief": {**MACHINE, "lustre_mounts": [LUSTRE]}}]},
            ["cluster", "cluster[0].chief.lustre_mounts"],
        ),
        (
            of({**H100, "reservation_affinity": {**RESERVED, "reservation_affinity_type": "NO_RESERVATION"}}),
            [f"cluster.chief.reservation_affinity.{key}" for key in ("key", "values")],
        ),
        (of({**H100, "reservation_affinity": {"type": "ANY"}}), ["cluster.chief.reservation_affinity.type"]),
        ({"scheduling": {"retries": 1e30}}, ["scheduling.retries"]),
        ({"fallbacks": [{"scheduling": {"retry_on": ["x"]}}]}, ["fallbacks[0].scheduling.retry_on"]),
    ],
)
def test_no_fault_is_only_the_consequence_of_another(changes: Mapping[str, Any], paths: list[str]) -> None:
    written = {key: value for key, value in request(**changes).items() if value is not None}
    assert [path.removeprefix("$.") for path in sorted(told(written))] == paths


def test_a_fallback_takes_the_reservation_away() -> None:
    fallbacks = [{"cluster": {"chief": {"reservation_affinity": None}}, "scheduling": {"spot": True}}]
    accepted(request(**of({**H100, "reservation_affinity": RESERVED}), fallbacks=fallbacks))
