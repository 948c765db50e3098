"""Every account has the permissions for its function's calls, and no grant without a reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.reach import ADAPTERS, Call, calls_of

ROOT = Path(__file__).resolve().parents[2]
TABLE: dict[str, Any] = yaml.safe_load((ROOT / "trainmaster/deploy/permissions.yaml").read_text())
TOPOLOGY: dict[str, Any] = yaml.safe_load((ROOT / "trainmaster/deploy/topology.yaml").read_text())
FUNCTIONS: list[str] = list(TOPOLOGY["functions"])
CALLS, ROLES, GRANTS = TABLE["calls"], TABLE["roles"], TABLE["grants"]
CLIENT_METHODS = ("create_", "get_", "list_", "cancel_", "delete_", "update_", "upload_", "merge_", "add_")
CLIENT_NOUNS = (
    "_job|persistent_resource|model|_version|_aliase|operation|context|context_children|metadata_store"
)


def grants_of(account: str) -> list[dict[str, Any]]:
    return [
        grant
        for grant in GRANTS
        if account in grant["accounts"] or ("functions" in grant["accounts"] and account in FUNCTIONS)
    ]


def needs(function: str) -> set[tuple[str, str]]:
    """The permissions, each with its resource, for all calls that the function can reach.

    Functions that copy models also submit the jobs that score them.
    """
    calls = calls_of(TOPOLOGY["functions"][function]["entry_point"])
    scores = Call(name="GcsObjects.copy", bucket="champions") in calls
    of_evaluations = {("iam.serviceAccounts.actAs", "account eval")} if scores else set[tuple[str, str]]()
    return of_evaluations | {
        (permission, thing_of(call, permission)) for call in calls for permission in permissions(call)
    }


def permissions(call: Call) -> list[str]:
    named: list[str] = CALLS[call.name]["permissions"]
    return named


def thing_of(call: Call, permission: str) -> str:
    match permission.partition(".")[0]:
        case "storage":
            return f"bucket {call.bucket}"
        case "pubsub":
            return "topic notices"
        case "iam":
            return "account trainer"
        case _:
            return "project all"


def may(account: str) -> set[tuple[str, str]]:
    return {
        (permission, thing_name(grant))
        for grant in grants_of(account)
        for permission in ROLES[grant["role"]].get("permissions", [])
    }


def thing_name(grant: dict[str, Any]) -> str:
    ((kind, name),) = grant["thing"].items()
    return f"{kind} {name}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_functions_account_may_do_all_that_the_function_calls(function: str) -> None:
    assert needs(function) - may(function) == set()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_calls_something(function: str) -> None:
    """So that the test above cannot pass by finding nothing."""
    assert {call.bucket for call in calls_of(TOPOLOGY["functions"][function]["entry_point"])} >= {"ledger"}


def test_well_known_calls_are_found() -> None:
    launch = calls_of("on_request_uploaded")
    assert {
        Call(name="VertexJobs.submit"),
        Call(name="PubsubNotices.publish"),
        Call(name="GcsObjects.read", bucket="inbox"),
        Call(name="GcsObjects.write", bucket="ledger"),
    } <= launch
    assert calls_of("on_data_arrived") == {Call(name="ArrivalLog.create", bucket="ledger")}
    assert Call(name="GcsObjects.listing", bucket="models") in calls_of("on_job_log")
    assert Call(name="GcsObjects.listing", bucket="inbox") in calls_of("on_tick")


@pytest.mark.parametrize("number", range(len(GRANTS)))
def test_every_grant_has_its_reason(number: int) -> None:
    """A function's grant is needed by one of its calls; every other has a page that says why."""
    grant = GRANTS[number]
    assert grant["why"]
    functions = [account for account in grant["accounts"] if account in FUNCTIONS]
    if (
        not functions or "secret" in grant["thing"]
    ):  # no function calls Secret Manager: the platform mounts files
        assert grant["source"].startswith("https://")
        return
    given = {(permission, thing_name(grant)) for permission in ROLES[grant["role"]]["permissions"]}
    assert any(needs(function) & given for function in functions)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_narrower_role_of_the_table_would_do(function: str) -> None:
    for grant in grants_of(function):
        own = set(ROLES[grant["role"]]["permissions"])
        needed = {permission for permission, on in needs(function) if on == thing_name(grant)} & own
        enough = {
            name
            for name, role in ROLES.items()
            if (given := set(role.get("permissions", []))) and needed <= given < own
        }
        assert enough == set(), f"instead of {grant['role']} on {grant['thing']}"


def test_no_primitive_role_and_no_administrators_role_is_granted() -> None:
    for role in ROLES:
        assert role not in ("roles/owner", "roles/editor", "roles/viewer")
        assert not role.lower().endswith("admin")


def test_training_jobs_and_functions_that_only_listen_cannot_write_records() -> None:
    writers = {
        account
        for grant in GRANTS
        if grant["thing"] == {"bucket": "ledger"}
        and "storage.objects.delete" in ROLES[grant["role"]]["permissions"]
        for account in grant["accounts"]
    }
    assert writers == set(FUNCTIONS) - {"on-data-arrived"}
    sends = [grant for grant in grants_of("on-notice-out") if grant["role"] == "roles/storage.objectUser"]
    assert [grant["folders"] for grant in sends] == [["notices/"]]
    of_ledger = [grant for grant in grants_of("trainer") if grant["thing"] == {"bucket": "ledger"}]
    assert [(grant["role"], grant["folders"]) for grant in of_ledger] == [
        ("roles/storage.objectViewer", ["manifests/"])
    ]


def test_nobody_may_replace_or_delete_the_copy_of_a_champion() -> None:
    every = [grant for grant in (*GRANTS, *TABLE["team_grants"]) if grant["thing"] == {"bucket": "champions"}]
    apart = [grant for grant in every if grant.get("folders", [""])[0].startswith("_evaluations/")]
    assert [grant["accounts"] for grant in apart] == [["eval"], ["team_eval"]]
    grants = [grant for grant in every if grant not in apart and grant["role"] != "trainmaster_buckets"]
    given = {permission for grant in grants for permission in ROLES[grant["role"]]["permissions"]}
    assert given == {"storage.objects.create", "storage.objects.get", "storage.objects.list"}
    writers = {
        account
        for grant in grants
        if "storage.objects.create" in ROLES[grant["role"]]["permissions"]
        for account in grant["accounts"]
    }
    assert writers == {"on-job-log", "on-tick"}


def test_a_build_may_do_what_its_steps_do_and_no_more_to_functions() -> None:
    given = may("build")
    assert {on for permission, on in given if permission == "iam.serviceAccounts.actAs"} == {
        "account functions",
        "account build",
    }
    assert ("pubsub.topics.publish", "topic images") in given
    assert {permission for permission, _ in given if permission.startswith("cloudfunctions.")} == {
        "cloudfunctions.functions.get",
        "cloudfunctions.functions.sourceCodeSet",
        "cloudfunctions.functions.update",
        "cloudfunctions.operations.get",
        "cloudfunctions.runtimes.list",
    }
    assert not any(on.startswith("bucket ledger") for _, on in given)


def test_everything_that_is_named_exists() -> None:
    accounts = {*FUNCTIONS, *TABLE["accounts"], *TABLE["agents"], "functions"}
    things = {
        "bucket": {*TOPOLOGY["buckets"], "builds"},
        "topic": set(TOPOLOGY["topics"]),
        "account": {*FUNCTIONS, *TABLE["accounts"], "functions"},
        "function": {"all"},
        "subscription": {"all"},
        "secret": {"notify"},
        "project": {"all"},
    }
    for grant in GRANTS:
        assert set(grant["accounts"]) <= accounts
        assert grant["role"] in ROLES
        ((kind, name),) = grant["thing"].items()
        assert name in things[kind]
    of_ci = [grant for role in TABLE["ci"].values() for grant in role["grants"]]
    assert {grant["role"] for grant in [*GRANTS, *TABLE["team_grants"], *of_ci]} == set(ROLES)


def test_every_call_of_a_service_that_an_adapter_makes_is_in_the_table() -> None:
    """Which methods of Google's clients the adapters name, against those of the table."""
    in_table: dict[str, set[str]] = {}
    for call in CALLS.values():
        in_table.setdefault(call["in"], set()).update(call["methods"])
    assert set(client_methods("vertex.py")) == in_table["vertex.py"]
    assert set(object_methods()) == in_table["gcs.py"]
    assert set(client_methods("model_registry.py")) == in_table["model_registry.py"]
    assert "publish" in attributes("pubsub.py")
    assert in_table["pubsub.py"] == {"publish"}
    assert "list_entries" in attributes("cloud_logging.py")
    assert in_table["cloud_logging.py"] == {"list_entries"}
    assert "timeSeries" in (ADAPTERS / "monitoring.py").read_text()
    assert in_table["monitoring.py"] == {"projects.timeSeries.list"}


def test_every_file_that_reaches_a_service_is_known_and_flows_reach_objects_by_stores_alone() -> None:
    """A store knows its bucket, which tells the tests here what a function needs."""
    assert not any("services.objects" in path.read_text() for path in ADAPTERS.parent.glob("flows/**/*.py"))
    reaching = {
        path.name
        for path in ADAPTERS.glob("*.py")
        if "from google.cloud" in path.read_text() or "import google.cloud" in path.read_text()
    }
    clients = {"gcs.py", "vertex.py", "model_registry.py", "pubsub.py", "cloud_logging.py"}
    assert reaching == {*clients, "job_messages.py"}
    # It has the types of Vertex AI's messages, and no client that could call anything.
    messages = (ADAPTERS / "job_messages.py").read_text()
    assert {line.strip() for line in messages.splitlines() if "google.cloud" in line} == {
        "from google.cloud.aiplatform_v1.types.custom_job import CustomJob",
        "from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import HyperparameterTuningJob",
        "from google.cloud.aiplatform_v1.types.persistent_resource import PersistentResource",
    }


def attributes(file: str) -> set[str]:
    return {
        node.attr
        for node in ast.walk(ast.parse((ADAPTERS / file).read_text()))
        if isinstance(node, ast.Attribute)
    }


def client_methods(file: str) -> Iterator[str]:
    return (
        name
        for name in attributes(file)
        if re.match(f"({'|'.join(CLIENT_METHODS)}).*({CLIENT_NOUNS})s?$", name)
    )


def object_methods() -> Iterator[str]:
    """Methods of the JSON API behind what the client's own are called."""
    api = {
        "download_to_file": "objects.get",
        "reload": "objects.get",
        "upload_from_string": "objects.insert",
        "rewrite": "objects.rewrite",
        "delete": "objects.delete",
        "list_blobs": "objects.list",
    }
    # Values, not calls: a name, a generation, checksums, metadata, the client itself.
    values = {
        "bucket",
        "blob",
        "name",
        "generation",
        "size",
        "time_created",
        "crc32c",
        "md5_hash",
        "metadata",
        "Client",
    }
    for node in ast.walk(ast.parse((ADAPTERS / "gcs.py").read_text())):
        match node:
            case ast.Attribute(
                value=ast.Name(id="blob") | ast.Attribute(attr="_client" | "client"), attr=name
            ):
                if name not in values:
                    yield api[name]
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="_blob")), attr=name):
                yield api[name]
