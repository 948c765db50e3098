"""A Dockerfile or requirement file costs a bounded amount of work, whatever is in it; usual ones come nowhere near."""

from pathlib import Path

import pytest

from trainstack.jobs.images.dockerfile import MAX_WORK, ImageError, read_image
from trainstack.jobs.images.installs import lines_of
from trainstack.jobs.images.layout import find
from trainstack.jobs.images.recipes import recipe_of

BASE = "FROM python:3.11\n"
TOO_MUCH = "The image takes too much work to read"


def read(tree: Path, dockerfile: str) -> None:
    (tree / "Dockerfile").write_text(dockerfile)
    recipe_of(read_image(tree))


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("ENV A=aaaaaaaa\n" + "ENV A=$A$A\n" * 40, TOO_MUCH),
        ("ENV A='$A$A$A$A' B=1\n" + "ENV A=${A:-x}${B:+$A}\n" * 40, TOO_MUCH),
        ("ARG A=aaaaaaaa\n" + "ARG A=$A$A\n" * 40, TOO_MUCH),
        ("ENV A=" + "a" * 3000 + "\n" + "RUN echo " + "$A" * 200 + "\n", TOO_MUCH),
        ("RUN " + "a;" * 60_000, TOO_MUCH),
        ("RUN " + "pip install a;" * 2000, TOO_MUCH),
        ("RUN pip install " + "a -q " * 5000, TOO_MUCH),
        ("COPY . .\nRUN pip install " + "-r requirements.txt " * 5000, TOO_MUCH),
        ("COPY requirements.txt /x\n" * 480 + "RUN pip install -r /x\n" * 480, TOO_MUCH),
        ("ENV A=1\n" * 2000, "more than 2000 instructions"),
        ("WORKDIR a\n" * 2000, "more than 2000 instructions"),
        ("COPY requirements.txt /x\n" * 501, "at most 500 sources"),
        ("COPY " + "requirements.txt " * 501 + "/x/\n", "at most 500 sources"),
        ("#" + "x" * 128 * 1024, "has more than 131072 bytes"),
    ],
)
def test_a_dockerfile_that_takes_too_much_work_is_refused(tmp_path: Path, lines: str, why: str) -> None:
    (tmp_path / "requirements.txt").write_text("packaging\n")
    with pytest.raises(ImageError, match=why):
        read(tmp_path, BASE + lines)


def test_defaults_that_are_not_closed_are_read_once(tmp_path: Path) -> None:
    """A search from each for its end would take the square of their number."""
    (tmp_path / "Dockerfile").write_text(BASE + "ENV A=${b:-}" + "${b:-" * 15_000 + "\n")
    assert not read_image(tmp_path).runs


def test_a_long_dockerfile_takes_a_tenth_of_the_work_that_it_may(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("packaging==26.3\n" * 300)
    lines = [
        'ENV PATH=/opt/bin:$PATH PYTHONPATH="/app:${PYTHONPATH:-}"',
        "ARG VERSION=1.2.3",
        "RUN apt-get update && apt-get install -y --no-install-recommends git curl && rm -rf /var/lib/apt/lists/*",
        'RUN curl -sSL "https://example.com/$VERSION.tar.gz" | tar xz && cd tool && make && make install',
        "COPY requirements.txt ./",
        "RUN pip install --no-cache-dir -r requirements.txt",
    ]
    (tmp_path / "Dockerfile").write_text("\n".join([BASE, *lines * 8, 'CMD ["python"]']))
    image = read_image(tmp_path)
    recipe_of(image)
    assert image.work.left > MAX_WORK * 0.8


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
