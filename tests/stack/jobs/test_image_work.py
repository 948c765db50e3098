"""A Dockerfile or requirement file has a bounded size, however it is written; usual ones come nowhere near."""

from pathlib import Path

import pytest

from trainstack.jobs.images.dockerfile import ImageError, read_image
from trainstack.jobs.images.installs import lines_of
from trainstack.jobs.images.layout import find

BASE = "FROM python:3.11\n"
GROWTH = "more than 10000 characters with its variables filled in"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("ENV A=aaaaaaaa\n" + "ENV A=$A$A\n" * 40, GROWTH),
        ("ENV A='$A$A$A$A' B=1\n" + "ENV A=${A:-x}${B:+$A}\n" * 40, GROWTH),
        ("ARG A=aaaaaaaa\n" + "ARG A=$A$A\n" * 40, GROWTH),
        ("ENV A=" + "a" * 3000 + "\n" + "RUN echo " + "$A" * 200 + "\n", GROWTH),
        ("ENV A=${b:-}" + "${b:-" * 10_000 + "\n", GROWTH),
        ("ENV A=1\n" * 300, "more than 300 instructions"),
        ("COPY requirements.txt /x\n" * 201, "at most 200 sources"),
        ("COPY " + "requirements.txt " * 201 + "/x/\n", "at most 200 sources"),
        ("#" + "x" * 64 * 1024, "has more than 65536 bytes"),
    ],
)
def test_a_dockerfile_that_is_too_large_is_refused(tmp_path: Path, lines: str, why: str) -> None:
    (tmp_path / "requirements.txt").write_text("packaging\n")
    (tmp_path / "Dockerfile").write_text(BASE + lines)
    with pytest.raises(ImageError, match=why):
        read_image(tmp_path)


def test_stars_beside_each_other_in_a_copy_are_one_as_to_docker(tmp_path: Path) -> None:
    """Each pair would be looked for in every folder below those that the pair before it matches."""
    deep = tmp_path / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / "x.py").touch()
    (tmp_path / "a" / "y.py").touch()
    (tmp_path / "Dockerfile").write_text(BASE + "COPY **/*.py /app/\nCOPY " + "**/" * 40 + "x /b/\n")
    image = read_image(tmp_path)
    assert find(image, "/app/y.py") == tmp_path / "a" / "y.py"
    assert find(image, "/app/x.py") is None


def test_requirement_files_that_name_each_other_share_one_limit(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n" + "# a comment\n" * 4000)
    with pytest.raises(ImageError, match=r"0\.txt and the files that it names have more than 1048576 bytes"):
        list(lines_of(tmp_path / "0.txt"))


def test_a_large_lock_with_hashes_is_read(tmp_path: Path) -> None:
    hashes = "".join(f" \\\n    --hash=sha256:{number:064}" for number in range(20))
    (tmp_path / "requirements.txt").write_text(
        "".join(f"package-{number}==1.{number}{hashes}\n" for number in range(500))
    )
    assert len(list(lines_of(tmp_path / "requirements.txt"))) == 500
