"""What Google's hosts answer where the stack serves less than Google: at once, and with a sentence."""

import httpx
import pytest

from .conftest import PROJECT, Replica, bearer, said


def test_each_host_refuses_a_method_over_rest_that_it_does_not_serve(
    replica: Replica, through: httpx.Client
) -> None:
    for host in ("run", "us-central1-run", "iam", "pubsub", "logging", "bucket.storage"):
        url = f"https://{host}.googleapis.com/v9/projects/{PROJECT}/things"
        answer = through.get(url, headers=bearer(replica.identity.token))
        assert answer.status_code == 400, host
        assert answer.json()["error"]["message"].startswith(f"The local stack does not serve GET {url}: ")


@pytest.mark.slow
def test_each_host_refuses_a_method_over_grpc_that_it_does_not_serve(replica: Replica) -> None:
    """Also if its client streams, and if it sends nothing: without HTTP/2, clients try again for a minute."""
    found = said(
        replica,
        """
        import json, time, google.auth, grpc
        from google.auth.transport import grpc as secured, requests
        credentials, _ = google.auth.default()
        for host, stream in (("storage", True), ("run", False), ("iam", False), ("aiplatform", False), ("pubsub", True)):
            target = f"{host}.googleapis.com:443"
            channel = secured.secure_authorized_channel(credentials, requests.Request(), target)
            try:
                if stream:
                    next(iter(channel.stream_stream("/some.Service/Method")(iter(lambda: time.sleep(60), 0), timeout=50)))
                else:
                    channel.unary_unary("/some.Service/Method")(b"", timeout=50)
            except grpc.RpcError as error:
                print(json.dumps([error.code().name, error.details().partition(":")[0]]))
        """,
    )
    assert found == [["UNIMPLEMENTED", "The local stack does not serve some.Service/Method"]] * 5


@pytest.mark.slow
def test_resource_manager_answers_over_grpc_with_the_id_of_a_number(replica: Replica) -> None:
    found = said(
        replica,
        """
        import json
        from google.cloud import resourcemanager
        client = resourcemanager.ProjectsClient()
        for name in ("project-1", "123456789012"):
            project = client.get_project(name=f"projects/{name}")
            print(json.dumps([project.name, project.project_id, project.state.name]))
        """,
    )
    assert found == [["projects/123456789012", PROJECT, "ACTIVE"]] * 2
