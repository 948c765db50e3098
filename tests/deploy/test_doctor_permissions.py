"""Every permission that `trainmaster doctor` needs is in trainmaster/deploy/permissions.yaml, and in the guide's roles."""

import ast
import re
from collections.abc import Iterator
from contextlib import closing, suppress

from google.cloud.logging import Client, Logger
from google.cloud.logging_v2._http import _SinksAPI
from google.cloud.storage import Blob
from google.pubsub_v1 import PublisherClient, SubscriberClient

from tests.deploy.cloud import ROOT
from tests.deploy.gcloud_recorder import recording
from tests.deploy.test_terraform_permissions import TABLE
from trainmaster.deploy.doctor.caller import _ON_PROJECT
from trainmaster.deploy.doctor.deployment import GrantTarget
from trainmaster.deploy.doctor.questions import _HOSTS, Questions

ROWS, ROLES = {row["call"]: row for row in TABLE["doctor"]}, TABLE["doctor_roles"]
CLIENTS = (SubscriberClient, PublisherClient, Client, Logger, _SinksAPI, Blob)
NO_CALL = {"bucket", "close", "logger"}
"""Methods that build or close something, without a request."""
THINGS = {
    "account": "projects/p/serviceAccounts/a@p.iam.gserviceaccount.com",
    "bucket": "projects/_/buckets/b",
    "folder": "projects/_/buckets/b/managedFolders/f/",
    "function": "projects/p/locations/r/services/s",
    "project": "projects/p",
    "secret": "projects/p/secrets/s",
    "subscription": "projects/p/subscriptions/s",
    "topic": "projects/p/topics/t",
}


def client_methods() -> Iterator[str]:
    """Methods of Google's clients that the doctor's modules call, and what they use of the client package."""
    used = ("dead_letters/reasons.py", "records.py")
    modules = [
        *(ROOT / "trainmaster/deploy/doctor").glob("*.py"),
        *(ROOT / "trainmaster/client" / name for name in used),
    ]
    for node in (node for path in modules for node in ast.walk(ast.parse(path.read_text()))):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if any(name in vars(each) for each in CLIENTS):
                if not name.startswith("_"):
                    yield name


def test_every_method_of_a_client_is_in_the_table() -> None:
    assert set(client_methods()) - NO_CALL == {call for call in ROWS if " " not in call}


def test_every_question_is_in_the_table() -> None:
    assert set(THINGS) | {"token"} == set(_HOSTS)
    with recording() as recorder:
        address = f"http://127.0.0.1:{recorder.port}"
        with closing(Questions(project="p", iam=address, storage=address)) as questions:
            for kind, resource in THINGS.items():
                questions.policy(GrantTarget(kind=kind, name="b", resource=resource))
            for ask in (questions.token, questions.project_number):
                with suppress(KeyError):  # the recorder's answer is empty
                    ask("p")
    asked = {re.sub(r"^(\w+) \S* ", r"\1 ", call) for call in recorder.calls}
    assert asked == {call for call in ROWS if " " in call}


def test_what_the_doctor_asks_of_its_caller_is_in_the_table() -> None:
    assert set(_ON_PROJECT) <= {permission for row in ROWS.values() for permission in row["permissions"]}


def test_the_minimal_roles_allow_every_call_and_list_no_other_permission() -> None:
    held = {permission for permissions in ROLES.values() for permission in permissions}
    assert {permission for row in ROWS.values() for permission in row["permissions"]} == held


def test_the_guide_names_the_same_roles() -> None:
    guide = (ROOT / "docs/how-to/deploy.md").read_text()
    section = guide.split("You need a reader's roles", 1)[1].split("\n### ", 1)[0]
    table = section.split("\n\n")[0] + section.split("\n\n")[1]
    assert set(re.findall(r"`(roles/[\w.]+)`", table)) == set(ROLES)
