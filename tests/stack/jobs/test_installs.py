"""The packages that the RUN lines of a Dockerfile install."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trainstack.jobs.images.dockerfile import ImageError, RunLine, read_image
from trainstack.jobs.images.installs import Install, installs_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("requirements.txt", "c.txt", "lib/pyproject.toml", "wheels/a.whl", "src/m/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def read(tree: Path, *lines: str) -> tuple[list[Install], list[str]]:
    (tree / "Dockerfile").write_text("\n".join(("FROM python:3", *lines, "")))
    return installs_of(read_image(tree))


@pytest.mark.parametrize(
    ("command", "requirements", "options"),
    [
        ("pip install a -q b", ["a", "b"], []),
        ("pip install cloudml-hypertune", ["cloudml-hypertune"], []),
        ("pip3 install -U --no-cache-dir 'torch==2.1' numpy", ["torch==2.1", "numpy"], []),
        ("pip3.11 --no-cache-dir install a", ["a"], []),
        ('["pip", "install", "a>=1"]', ["a>=1"], []),
        ("/opt/venv/bin/python -m pip install a", ["a"], []),
        ("--mount=type=cache,target=/c pip install a", ["a"], []),
        ("PIP_NO_INPUT=1 pip install a", ["a"], []),
        ("python -m venv /v && . /v/bin/activate && set -e && pip install --upgrade 'pip<25' wheel a", ["a"], []),
        ("uv venv /v && uv pip install --python /v/bin/python a", ["a"], []),
        ("pip install a==${VERSION} b==$VERSION", ["a==2.0", "b==2.0"], []),
        ("pip install --pre --only-binary :all: a", ["a"], ["--only-binary=:all:", "--pre"]),
    ],
)  # fmt: skip
def test_an_install_is_understood(
    tree: Path, command: str, requirements: list[str], options: list[str]
) -> None:
    (install,), not_done = read(tree, "ARG VERSION=2.0", f"RUN {command}")
    assert sorted(install.words) == sorted([*options, *requirements])
    assert (install.files, install.tree, not_done) == ((), None, [])


def test_indexes_are_kept_apart_for_their_urls_may_hold_passwords(tree: Path) -> None:
    (install,), _ = read(
        tree, "RUN pip install a -i https://u:p@x.example/s --extra-index-url=https://y.example/s"
    )
    assert (install.default_index, install.indexes) == ("https://u:p@x.example/s", ("https://y.example/s",))
    assert install.arguments == ("a",)
    assert "u:p" not in install.line


def test_paths_are_those_of_the_files_that_were_copied_before(tree: Path) -> None:
    installs, not_done = read(
        tree,
        "WORKDIR /app",
        "COPY requirements.txt c.txt ./",
        "RUN pip install -r requirements.txt -c /app/c.txt",
        "COPY lib /opt/lib",
        "RUN pip install -f wheels --no-index m",
        "COPY wheels wheels",
        "RUN pip install -e /opt/lib[gpu] && pip install --find-links wheels m",
        "COPY src src",
        "RUN pip install .",
    )
    first, second, third, fourth = installs
    assert (first.files, first.constraints, first.tree) == (
        (tree / "requirements.txt",),
        (tree / "c.txt",),
        None,
    )
    assert second.words == ("./../opt/lib[gpu]",)
    assert third.words == ("--find-links=./wheels", "m")
    assert third.workdir == "/app"
    assert third.tree == {
        "app": {
            "requirements.txt": tree / "requirements.txt",
            "c.txt": tree / "c.txt",
            "wheels": {"a.whl": tree / "wheels" / "a.whl"},
        },
        "opt": {"lib": {"pyproject.toml": tree / "lib" / "pyproject.toml"}},
    }
    assert fourth.words == ("./.",)
    assert not_done == ["RUN pip install -f wheels --no-index m"]


@pytest.mark.parametrize(
    "command",
    [
        "apt-get install -y libgl1",
        "pip install --target /opt/x numpy",
        "pip install -r missing.txt",
        "pip install --unheard-of numpy",
        "pip install -r",
        "pip install '$OTHER'",
        "pip uninstall -y numpy",
        "curl https://example.com/install.sh | sh",
        "uv sync --frozen",
        "pip install numpy > /dev/null",
        "( pip install numpy )",
        "cd lib && pip install .",
        "poetry install",
        "conda install -y numpy",
    ],
)
def test_commands_other_than_installs_are_listed_as_not_done(tree: Path, command: str) -> None:
    assert read(tree, f"RUN {command}") == ([], [f"RUN {command}"])


def test_commands_in_one_line_are_taken_apart(tree: Path) -> None:
    installs, not_done = read(
        tree, "RUN apt-get update && \\", "    pip install a 'b;python_version>\"3\"'; rm -rf /var/lib"
    )
    assert [install.words for install in installs] == [("a", 'b;python_version>"3"')]
    assert not_done == ["RUN apt-get update && rm -rf /var/lib"]


def test_a_here_document_is_refused_with_what_to_write_instead(tree: Path) -> None:
    with pytest.raises(
        ImageError, match="here-documents are not read here; write the commands as `RUN a && b`"
    ):
        read(tree, "RUN <<EOF", "pip install a", "EOF")


WORDS_OF_COMMANDS = r"""
pip install -r -c -e -f -i --pre --no-index --index-url= --index-url --no-index=x -- ; && |
> 2> ( ' " \ . ./lib lib[x] wheels requirements.txt cd set . uv python -m venv --python
a==1 git+https://x/y --target=x
"""
WORDS = st.lists(st.sampled_from(WORDS_OF_COMMANDS.split()) | st.text(max_size=6), max_size=10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=WORDS)
@example(words=["-r", "./lib"])  # a folder
@example(words=["-c", "lib"])
def test_any_command_is_an_install_or_is_shown_as_not_done(tree: Path, words: list[str]) -> None:
    image = read_image(_plain(tree))
    run = RunLine(command="pip install " + " ".join(words), before=image)
    installs, not_done = installs_of(replace(image, runs=(run,)))
    assert isinstance(installs, list)
    assert len(not_done) <= 1


def _plain(tree: Path) -> Path:
    (tree / "Dockerfile").write_text("FROM python:3\nCOPY . .\n")
    return tree
