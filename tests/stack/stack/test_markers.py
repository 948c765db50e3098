"""The objects that the deployment creates beside each team's folder."""

from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from trainmaster.cli.stack.product import read_topology
from trainmaster.resources import DEPLOY
from trainstack.stack.access import grants_of, markers_of
from trainstack.stack.deliveries import ensure_marker
from trainstack.storage import serve

PROJECT = "marked-project"


def test_a_teams_markers_are_created_once_and_leave_the_teams_files_in_their_folder(tmp_path: Path) -> None:
    topology = read_topology(DEPLOY / "topology.yaml", project=PROJECT, region="us-central1")
    grants = grants_of(topology, DEPLOY / "permissions.yaml", ["vision"])
    (marker,) = markers_of(grants, topology, tmp_path / "buckets")
    assert marker == tmp_path / "buckets" / f"{PROJECT}-models" / "vision"
    with serve(tmp_path) as url:
        client = storage.Client(
            project=PROJECT, credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
        )
        bucket = client.create_bucket(marker.parent.name)
        for _ in range(2):
            ensure_marker(url, marker)
        bucket.blob("vision/m/run/model").upload_from_string("weights")
        found = {blob.name: blob.generation for blob in client.list_blobs(bucket)}
        client.close()
    assert set(found) == {"vision", "vision/", "vision/m/run/model"}
    assert (marker / "m" / "run" / "model").read_text() == "weights"
