"""The local user's tools and the functions reach a running stack, each as its own principal."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from trainstack.stack.front import read_addresses, service_of

from .project import ROOT, Project

pytestmark = pytest.mark.slow


def in_shell(project: Project, home: Path, script: str, *flags: str) -> str:
    """What a shell prints that has taken the stack's variables, and has nothing else."""
    variables = f"{sys.executable} -m trainmaster stack env --state {project.state} {' '.join(flags)}"
    done = subprocess.run(
        ["bash", "-euc", f'eval "$({variables})"\n{script}'],
        cwd=ROOT, env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_uses_the_stack_after_one_command_and_without_an_account(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "hello.txt").write_text("hello")
    printed = in_shell(
        project,
        tmp_path,
        f"""
        gcloud storage cp {tmp_path}/hello.txt gs://{project.models}/gcloud/hello.txt
        gcloud pubsub topics list --format='value(name)' --filter=name:trainmaster-requests
        gcloud ai custom-jobs list --format='value(name)' | wc -l
        (gcloud pubsub topics create by-gcloud
        gcloud pubsub subscriptions create by-gcloud --topic=by-gcloud --ack-deadline=20
        gcloud pubsub topics publish by-gcloud --message=hello --attribute=key=value) >/dev/null
        gcloud pubsub subscriptions pull by-gcloud --auto-ack --format='value(message.attributes.key)'
        gcloud pubsub topics delete by-gcloud
        gcloud pubsub topics list --filter=name:by-gcloud
        """,
    )
    assert printed.split() == [
        f"projects/{project.id}/topics/trainmaster-requests",
        str(sum("customJobs" in name for name in project.all_jobs())),
        "value",
    ]
    assert (project.folder(project.models) / "gcloud" / "hello.txt").read_text() == "hello"
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize(
    "path",
    ["/v1/projects/{}/topics", "/v1/projects/{}/locations/us-central1/customJobs", "/storage/v1/b?project={}",
     "/v2/projects/{}/sinks", "/v1/projects/{}"],
)  # fmt: skip
def test_the_front_of_a_container_finds_every_service(project: Project, path: str) -> None:
    path = path.format(project.id)
    address = read_addresses(project.state)[service_of(f"GET {path} HTTP/1.1".encode())]
    url = f"{'' if '//' in address else 'http://'}{address}{path}"
    assert requests.get(url, timeout=30).status_code == 200


@pytest.mark.skipif(shutil.which("gsutil") is None, reason="gsutil is not installed")
def test_gsutil_uses_the_stack_too_and_a_command_of_no_service_is_refused_at_once(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "hello.txt").write_text("hello")
    printed = in_shell(
        project,
        tmp_path,
        f"""
        bucket=gs://{project.id}-gsutil
        gsutil -q mb -l us-central1 $bucket
        gsutil -q cp {tmp_path}/tree/hello.txt $bucket/a.txt
        gsutil -q rsync -r {tmp_path}/tree $bucket/tree
        gsutil ls -r "$bucket/**"
        gsutil cat $bucket/a.txt
        gsutil -q rm -r $bucket
        timeout 30 gcloud run services list 2>&1 | grep -o "does not serve GET https://run.googleapis.com"
        """,
    )
    bucket = f"gs://{project.id}-gsutil"
    assert printed == (
        f"{bucket}/a.txt\n{bucket}/tree/hello.txt\nhellodoes not serve GET https://run.googleapis.com\n"
    )


def test_what_names_a_token_is_readable_to_its_owner_alone(project: Project) -> None:
    token = (project.state / "user" / "access-token").read_text()
    assert (project.state / "user").stat().st_mode & 0o777 == 0o700
    assert token not in (project.state / "stack.env").read_text()


def test_behind_the_gateway_a_shells_clients_have_an_account_and_anonymous_ones_none(
    project: Project, tmp_path: Path
) -> None:
    name = "private-to-accounts"
    project.storage.create_bucket(name).blob("a.txt").upload_from_string("a")
    program = f"""
from google.auth.exceptions import InvalidOperation
from google.cloud import storage
print(storage.Client().bucket("{name}").blob("a.txt").download_as_text())
try:
    print(storage.Client.create_anonymous_client().bucket("{name}").blob("a.txt").download_as_text())
except InvalidOperation:  # the client would refresh its credentials, and has none
    print("refused")
"""
    printed = in_shell(project, tmp_path, f"{sys.executable} -c {shlex.quote(program)}", "--gateway")
    assert printed.split() == ["a", "refused"]
