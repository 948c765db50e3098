"""What the RUN lines of a Dockerfile install."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trainmaster.local.jobs.images import syncs
from trainmaster.local.jobs.images.dockerfile import ImageError, Run, read_image
from trainmaster.local.jobs.images.installs import Install, Installation, Project, installs_of
from trainmaster.local.jobs.images.syncs import Sync


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("requirements.txt", "c.txt", "lib/pyproject.toml", "wheels/a.whl", "src/m/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def read(tree: Path, *lines: str) -> tuple[list[Installation], list[str]]:
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
        ("PIP_NO_INPUT=1 pip install a 2> /dev/null", ["a"], []),
        ("python -m venv /v && . /v/bin/activate && set -e && pip install --upgrade 'pip<25' wheel a", ["a"], []),
        ("uv venv /v && uv pip install --python /v/bin/python a", ["a"], []),
        ("pip install a==${VERSION} b==$VERSION", ["a==2.0", "b==2.0"], []),
        ("(cd /tmp && pip install a)", ["a"], []),
        ("pip install --pre --only-binary :all: a", ["a"], ["--prerelease=allow", "--only-binary", ":all:"]),
    ],
)  # fmt: skip
def test_an_install_is_understood(
    tree: Path, command: str, requirements: list[str], options: list[str]
) -> None:
    expected = Install(requirements=tuple(requirements), options=tuple(options))
    assert read(tree, "ARG VERSION=2.0", f"RUN {command}") == ([expected], [])


def test_indexes_are_kept_apart_for_their_urls_may_hold_passwords(tree: Path) -> None:
    (install,), _ = read(
        tree, "RUN pip install a -i https://u:p@x.example/s --extra-index-url=https://y.example/s"
    )
    assert (install.default_index, install.indexes) == ("https://u:p@x.example/s", ("https://y.example/s",))
    assert install.options == ()


def test_paths_are_those_of_the_files_that_were_copied_before(tree: Path) -> None:
    installs, not_done = read(
        tree,
        "WORKDIR /app",
        "COPY requirements.txt c.txt ./",
        "RUN pip install -r requirements.txt -c /app/c.txt",
        "COPY lib /opt/lib",
        "COPY wheels wheels",
        "RUN cd /opt && pip install ./lib -f wheels --no-index && pip install -e lib/[gpu]",
        "RUN pip install --find-links wheels m",
        "COPY lib/pyproject.toml .",
        "COPY src src",
        "RUN pip install .",
    )
    toml = tree / "lib" / "pyproject.toml"
    module = {"m": tree / "src" / "m"}
    assert installs[:3] == [
        Install(files=(tree / "requirements.txt",), constraints=(tree / "c.txt",)),
        Install(projects=(Project(node={"pyproject.toml": toml}, extras="[gpu]"),)),
        Install(requirements=("m",), links=({"a.whl": tree / "wheels" / "a.whl"},)),
    ]
    assert isinstance(installs[3], Install)
    (project,) = installs[3].projects
    assert isinstance(project.node, dict)
    assert (project.node["pyproject.toml"], project.node["src"]) == (toml, module)
    assert not_done == ["RUN pip install ./lib -f wheels --no-index"]


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
        "uv sync",
        "uv sync --frozen --unheard-of",
        "poetry install",
        "conda install -y numpy",
    ],
)
def test_what_is_not_done_here_is_shown_as_it_is_written(tree: Path, command: str) -> None:
    assert read(tree, f"RUN {command}") == ([], [f"RUN {command}"])


def test_files_of_the_tree_that_a_line_mounts_are_there_for_that_line(tree: Path) -> None:
    mount = "RUN --mount=type=cache,target=/c --mount=type=bind,source=requirements.txt,target=/tmp/r.txt"
    installs, not_done = read(tree, f"{mount} pip install -r /tmp/r.txt", "RUN pip install -r /tmp/r.txt")
    assert installs == [Install(files=(tree / "requirements.txt",))]
    assert not_done == ["RUN pip install -r /tmp/r.txt"]


PROJECT = '[project]\nname = "own"\nversion = "0"\n'
LOCK = 'version = 1\n[[package]]\nname = "a"\nversion = "1"\nsource = {source}\n'


def sync(tree: Path, *lines: str, source: str = '{ registry = "https://pypi.org/simple" }') -> Sync:
    (tree / "pyproject.toml").write_text(PROJECT)
    (tree / "uv.lock").write_text(LOCK.format(source=source))
    (found,), not_done = read(tree, "WORKDIR /app", "COPY . .", *lines)
    assert isinstance(found, Sync)
    assert not_done == []
    return found


def test_a_sync_has_its_own_options_and_those_of_the_images_variables(tree: Path) -> None:
    found = sync(
        tree, "ENV UV_NO_DEV=1 UV_LOCKED=true UV_FROZEN=0",
        "RUN uv sync --no-dev --extra gpu --group train -q --no-cache --index https://u:p@y.example/s",
    )  # fmt: skip
    assert found.options == ("--locked", "--no-dev", "--extra", "gpu", "--group", "train")
    assert found.indexes == ("https://u:p@y.example/s",)


@pytest.mark.parametrize(
    ("source", "flags", "is_whole"),
    [
        ('{ registry = "https://pypi.org/simple" }', "", False),
        ('{ git = "https://example.com/a?rev=1#1" }', "", False),
        ('{ virtual = "." }', "", False),
        ('{ editable = "." }', "", True),
        ('{ editable = "." }', "--no-install-project", False),
        ('{ editable = "packages/a" }', "--no-install-project", True),
        ('{ registry = "wheels" }', "", True),
        ('{ path = "a.whl" }', "", True),
        ("1", "", True),
    ],
)
def test_a_sync_depends_on_the_whole_tree_only_where_the_lock_names_sources_in_it(
    tree: Path, source: str, flags: str, is_whole: bool
) -> None:
    found = sync(tree, f"RUN uv sync {flags}", source=source)
    assert isinstance(found.project, dict)
    assert ("src" in found.project) is is_whole
    assert {"pyproject.toml", "uv.lock"} <= found.project.keys()


def test_a_sync_without_a_lock_depends_on_the_whole_tree(tree: Path) -> None:
    (tree / "pyproject.toml").write_text(PROJECT)
    (found,), _ = read(tree, "COPY . /app/", "WORKDIR /app", "RUN uv sync")
    assert isinstance(found, Sync)
    assert isinstance(found.project, dict)
    assert "src" in found.project


@pytest.mark.parametrize(
    ("lock", "expected"), [("[", "uv.lock cannot be read"), ("#" * 100, "uv.lock has more than 50 bytes")]
)
def test_a_lock_that_cannot_be_read_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch, lock: str, expected: str
) -> None:
    monkeypatch.setattr(syncs, "MAX_LOCK_BYTES", 50)
    (tree / "pyproject.toml").write_text(PROJECT)
    (tree / "uv.lock").write_text(lock)
    with pytest.raises(ImageError, match=expected):
        read(tree, "COPY . .", "RUN uv sync")


def test_commands_in_one_line_are_taken_apart(tree: Path) -> None:
    installs, not_done = read(
        tree, "RUN apt-get update && \\", "    pip install a 'b;python_version>\"3\"'; rm -rf /var/lib"
    )
    assert installs == [Install(requirements=("a", 'b;python_version>"3"'))]
    assert not_done == ["RUN apt-get update && rm -rf /var/lib"]


def test_packages_come_with_a_copy_from_the_stage_that_installs_them(tree: Path) -> None:
    installs, _ = read(
        tree, "RUN pip install a", "FROM python:3-slim", "COPY --from=0 /usr/local /usr/local", "RUN pip install b"
    )  # fmt: skip
    assert installs == [Install(requirements=("a",)), Install(requirements=("b",))]


def test_a_here_document_is_refused_with_what_to_write_instead(tree: Path) -> None:
    with pytest.raises(
        ImageError, match="here-documents are not read here; write the commands as `RUN a && b`"
    ):
        read(tree, "RUN <<EOF", "pip install a", "EOF")


WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "pip",
                "install",
                "-r",
                "-c",
                "-e",
                "-f",
                "-i",
                "--pre",
                "--no-index",
                "--index-url=",
                "--index-url",
                "--no-index=x",
                "--",
                ";",
                "&&",
                "|",
                ">",
                "2>",
                "(",
                "'",
                '"',
                "\\",
                ".",
                "./lib",
                "lib[x]",
                "wheels",
                "requirements.txt",
                "cd",
                "set",
                ".",
                "uv",
                "python",
                "-m",
                "venv",
                "--python",
                "a==1",
                "git+https://x/y",
                "--target=x",
            ]
        ),
        st.text(max_size=6),
    ),
    max_size=10,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=WORDS)
@example(words=["-r", "./lib"])  # a folder
@example(words=["-c", "lib"])
def test_any_command_is_an_install_or_is_shown_as_not_done(tree: Path, words: list[str]) -> None:
    image = read_image(_plain(tree))
    run = Run(command="pip install " + " ".join(words), before=image)
    installs, not_done = installs_of(replace(image, runs=(run,)))
    assert isinstance(installs, list)
    assert len(not_done) <= 1


def _plain(tree: Path) -> Path:
    (tree / "Dockerfile").write_text("FROM python:3\nCOPY . .\n")
    return tree
