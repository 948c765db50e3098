"""The program that a Dockerfile runs, and the places of its files."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainstack.jobs.images.dockerfile import DockerfileImage, ImageError, read_image, repository_of
from trainstack.jobs.images.layout import layout
from trainstack.process.processes import SYSTEM_PATH


def image(tree: Path, text: str) -> DockerfileImage:
    (tree / "Dockerfile").write_text(text)
    return read_image(tree)


@pytest.mark.parametrize(
    ("uri", "repository"),
    [
        ("gcr.io/p/i:1", "gcr.io/p/i"),
        ("gcr.io/p/i@sha256:00", "gcr.io/p/i"),
        ("gcr.io/p/i:1@sha256:00", "gcr.io/p/i"),
        ("localhost:5000/i", "localhost:5000/i"),
        ("localhost:5000/i:1", "localhost:5000/i"),
    ],
)
def test_tag_and_digest_are_no_part_of_the_repository(uri: str, repository: str) -> None:
    assert repository_of(uri) == repository


@pytest.mark.parametrize(
    ("command", "args", "runs"),
    [
        ([], [], ["e", "1", "c"]),
        ([], ["a"], ["e", "1", "a"]),
        (["x", "y"], [], ["x", "y"]),
        (["x"], ["a"], ["x", "a"]),
    ],
)
def test_command_replaces_the_entrypoint_and_args_replace_cmd(
    tmp_path: Path, command: list[str], args: list[str], runs: list[str]
) -> None:
    found = image(tmp_path, 'FROM b\nENTRYPOINT ["e", "1"]\nCMD ["c"]\n')
    assert found.argv(command=command, args=args) == runs


def test_the_shell_form_runs_in_a_shell(tmp_path: Path) -> None:
    found = image(tmp_path, "FROM b\nCMD echo $HOME && \\\n  true\n")
    assert found.argv(command=[], args=[])[:2] == ["/bin/sh", "-c"]
    assert found.command[2].startswith("echo $HOME &&")


def test_the_last_entrypoint_and_cmd_win(tmp_path: Path) -> None:
    found = image(tmp_path, 'FROM b\nENTRYPOINT ["a"]\nENTRYPOINT ["b"]\nCMD ["c"]\nCMD ["d"]\n')
    assert found.argv(command=[], args=[]) == ["b", "d"]


def test_env_uses_earlier_arg_and_env_and_defaults(tmp_path: Path) -> None:
    found = image(
        tmp_path,
        "ARG BASE=b\nARG SHARED=from-the-top\nFROM ${BASE}:1\nARG SHARED\nARG LOCAL=l\n"
        'ENV A=${LOCAL} B="two words" C=$SHARED\nENV D=${A}-${B} E=${NONE:-fallback}\nENV F old form\n',
    )
    assert found.env == {
        "PATH": SYSTEM_PATH, "A": "l", "B": "two words", "C": "from-the-top", "D": "l-two words", "E": "fallback", "F": "old form",
    }  # fmt: skip


def test_workdir_is_relative_to_the_one_before_it(tmp_path: Path) -> None:
    assert image(tmp_path, "FROM b\nENV ROOT=/srv\nWORKDIR $ROOT\nWORKDIR app/../x\n").workdir == "/srv/x"


def test_the_last_stage_counts_and_inherits_the_stage_it_names(tmp_path: Path) -> None:
    found = image(
        tmp_path,
        'FROM b AS base\nENV A=1\nWORKDIR /w\nENTRYPOINT ["base"]\nFROM c AS other\nENV B=2\nFROM base\nENV C=3\n',
    )
    assert (found.env, found.workdir, found.entrypoint) == (
        {"PATH": SYSTEM_PATH, "A": "1", "C": "3"},
        "/w",
        ("base",),
    )


@pytest.mark.parametrize("reference", ["$PATH", "${PATH}", "${PATH:-/nowhere}"])
def test_a_search_path_goes_on_with_that_of_the_base_image(tmp_path: Path, reference: str) -> None:
    found = image(tmp_path, f'FROM b AS base\nFROM base\nENV V=/opt/venv\nENV PATH="$V/bin:{reference}"\n')
    assert found.env["PATH"] == "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def test_copied_files_lie_where_copy_puts_them(tmp_path: Path) -> None:
    for name in ("src/a.py", "src/sub/b.py", "one.txt", "two.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = image(
        tmp_path,
        "FROM b\nWORKDIR /app\nCOPY src ./code\nCOPY src/ .\nCOPY *.txt /data/\nCOPY one.txt /etc/renamed.conf\n"
        "COPY --from=builder /x /y\nCOPY --chmod=755 two.txt /data/code/\n",
    )
    src, one, two = tmp_path / "src", tmp_path / "one.txt", tmp_path / "two.txt"
    assert layout(found) == {
        "app": {"code": {"a.py": src / "a.py", "sub": src / "sub"}, "a.py": src / "a.py", "sub": src / "sub"},
        "data": {"one.txt": one, "two.txt": two, "code": {"two.txt": two}},
        "etc": {"renamed.conf": one},
    }


def test_the_whole_tree_can_be_copied_and_overlaid_without_its_git_folder(tmp_path: Path) -> None:
    for name in (".git/HEAD", "trainer/task.py", "other/task.py", "other/more.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = layout(image(tmp_path, "FROM b\nWORKDIR /app\nCOPY . .\nCOPY other /app/trainer\n"))
    app = found["app"]
    assert isinstance(app, dict)
    assert sorted(app) == ["Dockerfile", "other", "trainer"]
    assert app["trainer"] == {name: tmp_path / "other" / name for name in ("task.py", "more.py")}


def test_nothing_above_the_tree_can_be_copied(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "secret").touch()
    with pytest.raises(ImageError, match=r"COPY \.\./secret: there is no such file or directory"):
        image(tree, "FROM b\nCOPY ../secret /s\n")


def test_every_missing_file_of_copy_is_named_and_a_pattern_may_match_none(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"COPY train\.py: there is no such .*; COPY lib/: there is no such"):
        image(tmp_path, "FROM b\nCOPY train.py none*.txt /app/\nCOPY lib/ /lib\n")
    assert layout(image(tmp_path, "FROM b\nCOPY none*.txt /app/\n")) == {}


def test_what_stages_that_are_not_used_copy_is_not_looked_for(tmp_path: Path) -> None:
    assert layout(image(tmp_path, "FROM b AS unused\nCOPY no /\nFROM c\n")) == {}


def test_instructions_that_nothing_here_carries_out_are_kept_as_they_are_written(tmp_path: Path) -> None:
    found = image(
        tmp_path,
        "FROM b\nLABEL a=1\nEXPOSE 80\nUSER 1000\nHEALTHCHECK CMD true\nADD https://example.com/x /x\n",
    )
    assert found.not_done == ("USER 1000", "HEALTHCHECK CMD true", "ADD https://example.com/x /x")


def test_an_instruction_that_docker_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ImageError, match="INSTALL 'numpy' cannot be understood: there is no such instruction"
    ):
        image(tmp_path, "FROM b\nINSTALL numpy\n")


def test_a_base_can_be_a_source_tree_too(tmp_path: Path) -> None:
    base, tree = tmp_path / "base", tmp_path / "tree"
    for folder in (base, tree):
        folder.mkdir()
        (folder / "own.py").touch()
    (base / "Dockerfile").write_text("FROM python:3\nENV A=1\nWORKDIR /app\nCOPY own.py base.py\nCMD base\n")
    (tree / "Dockerfile").write_text("FROM example.com/base:2\nCOPY own.py .\n")
    found = read_image(tree, {"example.com/base": base})
    assert (found.base, found.env["A"], found.workdir) == ("python:3", "1", "/app")
    assert layout(found) == {"app": {"base.py": base / "own.py", "own.py": tree / "own.py"}}


def test_trees_that_stand_on_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(f"FROM {other}\n")
    with pytest.raises(ImageError, match="more than 10 source trees stand one on the other"):
        read_image(tmp_path / "a", {"a": tmp_path / "a", "b": tmp_path / "b"})


LINES = st.lists(
    st.builds(
        "{} {}".format,
        st.sampled_from(["FROM", "RUN", "COPY", "ADD", "ENV", "ARG", "WORKDIR", "CMD", "USER", "FROM b\nRUN", "#"]),
        st.one_of(
            st.sampled_from(["b", "b AS c", "--from=0 a b", "--from=9", "a b", "[", '["a"]', "A=1", "${A:-", "<<E", "*", "\\"]),
            st.text(max_size=12),
        ),
    ),
    max_size=6,
).map("\n".join)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(LINES.map(str.encode), st.binary(max_size=60)))
def test_any_dockerfile_is_read_or_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "Dockerfile").write_bytes(text)
    with contextlib.suppress(ImageError):
        layout(read_image(tmp_path))


@pytest.mark.parametrize("text", ["", "ENV A=1\n", "FROM b\nENV A=1 B\n"])
def test_an_invalid_dockerfile_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImageError, match="Dockerfile"):
        image(tmp_path, text)


def test_a_tree_without_a_dockerfile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no Dockerfile"):
        read_image(tmp_path)
