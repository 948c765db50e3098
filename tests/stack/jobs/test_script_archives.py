"""The requirements of a packed script, for jobs that start at the same time."""

import gzip
import hashlib
import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from trainmaster.client.submission.pack import pack_script
from trainstack.jobs.images.dockerfile import ImageError
from trainstack.jobs.images.scripts import MAX_KEPT, Scripts

REQUIREMENTS = "cloudml-hypertune\n"


def put(buckets: Path, content: bytes) -> str:
    """The URI of an archive in the bucket `data`."""
    name = f"scripts/{hashlib.sha256(content).hexdigest()}.tar.gz"
    (buckets / "data/scripts").mkdir(parents=True, exist_ok=True)
    (buckets / "data" / name).write_bytes(content)
    return f"gs://data/{name}"


def packed(folder: Path, **files: str) -> bytes:
    folder.mkdir()
    for name, text in {"train.py": "", "requirements.txt": REQUIREMENTS, **files}.items():
        (folder / name).write_text(text)
    return pack_script(folder / "train.py").content


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(buckets=tmp_path / "buckets", folder=tmp_path / "kept")


def test_jobs_that_start_together_all_get_the_requirements_of_their_script(
    scripts: Scripts, tmp_path: Path
) -> None:
    jobs = 8
    uri = put(scripts.buckets, packed(tmp_path / "project", **{"data.csv": "1,2\n" * 500_000}))
    together = Barrier(jobs, timeout=60)

    def start(_: int) -> str | None:
        together.wait()
        install = scripts.install_of(uri)
        return Path(install.files[0]).read_text() if install else None

    with ThreadPoolExecutor(jobs) as threads:
        assert list(threads.map(start, range(jobs))) == [REQUIREMENTS] * jobs
    assert len(list(scripts.folder.iterdir())) == 1


def test_an_archive_that_jobs_keep_using_outlasts_others(scripts: Scripts, tmp_path: Path) -> None:
    uri = put(scripts.buckets, packed(tmp_path / "project"))
    install = scripts.install_of(uri)
    assert install is not None
    for number in range(MAX_KEPT + 1):
        scripts.install_of(put(scripts.buckets, packed(tmp_path / f"other{number}", n=str(number))))
        assert scripts.install_of(uri) == install
    assert Path(install.files[0]).is_file()
    assert len(list(scripts.folder.iterdir())) == MAX_KEPT


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"no tar"), gzip.compress(b"x" * 600)[:-8] + b"\0" * 8],
    ids=["empty", "no gzip", "no tar", "wrong checksum"],
)
def test_the_command_of_the_job_reports_a_damaged_archive(scripts: Scripts, content: bytes) -> None:
    assert scripts.install_of(put(scripts.buckets, content)) is None
    assert scripts.install_of(f"gs://data/scripts/{'0' * 64}.tar.gz") is None


def test_an_archive_that_cannot_be_unpacked_fails_the_job_with_the_reason(
    scripts: Scripts, tmp_path: Path
) -> None:
    uri = put(scripts.buckets, packed(tmp_path / "project"))
    scripts.folder.write_text("a file in its place")
    with pytest.raises(ImageError, match=f"The script's archive {uri} cannot be unpacked: .*kept"):
        scripts.install_of(uri)


@pytest.mark.parametrize("name", ["../outside", "folder/../../outside", "/tmp/outside", "link/outside"])
def test_no_archive_writes_outside_its_folder(scripts: Scripts, tmp_path: Path, name: str) -> None:
    """With Python 3.11.2, too, whose tarfile has no filter for that."""
    (tmp_path / "elsewhere").mkdir()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "elsewhere")
        tar.addfile(link)
        for each in ("requirements.txt", name.replace("/tmp", str(tmp_path), 1)):
            member = tarfile.TarInfo(each)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"\n"))
    scripts.install_of(put(scripts.buckets, content.getvalue()))
    inside = [path for kept in scripts.folder.iterdir() for path in kept.rglob("outside")]
    assert [path for path in tmp_path.rglob("outside") if path not in inside] == []
