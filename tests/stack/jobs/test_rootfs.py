"""The files that a confined replica sees."""

from pathlib import Path

from trainstack.jobs.images.dockerfile import read_image
from trainstack.jobs.replicas.rootfs import ReplicaView, confined_steps


def test_the_systems_own_python_leaves_usr_whole_and_read_only(tmp_path: Path) -> None:
    """/usr is its base. Mounted entry by entry, /usr would be a folder that a job can write to."""
    (tmp_path / "Dockerfile").write_text("FROM python:3\nWORKDIR /app\nCOPY . .\n")
    view = ReplicaView(
        buckets=tmp_path / "buckets",
        shares=None,
        read_only=(Path("/usr"), tmp_path / "venv"),
        writable=(),
        tmp=tmp_path / "tmp",
        hidden=tmp_path / "state",
    )
    steps = confined_steps(read_image(tmp_path), view)
    assert [step for step in steps if step[-1].startswith("usr")] == [("bind-ro", "/usr", "usr")]
    assert ("bind-ro", str(tmp_path / "venv"), str(tmp_path / "venv").strip("/")) in steps
