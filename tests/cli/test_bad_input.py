"""Bad input for every verb: one clear error, the documented exit status, and nothing changed."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.client.served import BUCKETS, PROJECT, Served, no_jobs, served_context
from tests.command import Done, trainmaster
from trainmaster.cli.command import verbs
from trainmaster.cli.exits import ExitStatus

ERROR_LINES_MAX = 4
"""Of the error itself; click adds the usage and where help is."""
NEEDS_NO_CONTEXT = {"check", "plan"}
"""Outside any context they use the project of a new local stack, or that of the examples."""
NEEDS_NO_SERVICE = {"check"}
WHOLE = "model_name: own\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"


def leaves(
    group: click.Group, call: click.Context, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every verb that does something, by its words."""
    for name in group.list_commands(call):
        command = group.get_command(call, name)
        assert command is not None
        here = click.Context(command, info_name=name, parent=call)
        if isinstance(command, click.Group):
            yield from leaves(command, here, (*words, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*words, name)), command


LEAVES = dict(leaves(verbs, click.Context(verbs, info_name="trainmaster")))


def required(command: click.Command) -> list[click.Parameter]:
    return [each for each in command.params if each.required]


def samples(command: click.Command) -> list[str]:
    """Words for the required arguments and options, of which no run, rule or model has the name."""
    words = ["request.yaml"] if command.name == "submit" else []
    for each in required(command):
        value = "request.yaml" if each.name in ("file", "files") else "nothing-has-this-name"
        if isinstance(each.type, click.IntRange):
            value = "1"
        if isinstance(each.type, click.Choice):
            value = str(each.type.choices[0])
        words += [value] if isinstance(each, click.Argument) else [each.opts[0], value]
    return words


def takes(command: click.Command, *names: str) -> bool:
    return any(each.name in names for each in command.params)


IN_CONTEXT = [name for name, command in LEAVES.items() if takes(command, "context")]
BY_NAME = [
    name
    for name in IN_CONTEXT
    if any(each.name in ("run", "runs", "rule", "model", "subject") for each in required(LEAVES[name]))
]
WITHOUT_THE_OPTION = ["context", "doctor", "stack env", "stack status"]
"""Verbs that work in the current context, or on a stack's folder, but have no option --context."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder but for a request; no stack runs, and no credentials are anywhere."""
    (tmp_path / "request.yaml").write_text("model_name: m\n")
    return tmp_path


def run(folder: Path, words: str, *more: str) -> Done:
    environment = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "NO_GCE_CHECK": "true",
        "CLOUDSDK_CONFIG": str(folder),
    }
    return trainmaster(*words.split(), *more, cwd=folder, environment=environment)


def assert_refused(done: Done, status: ExitStatus, *said: str) -> None:
    assert done.status == status, done
    assert "Traceback" not in done.err
    error = done.err.partition("Error: ")[2] or done.err
    assert len(error.strip().splitlines()) <= ERROR_LINES_MAX, error
    for text in said:
        assert text in done.err


@pytest.fixture(autouse=True)
def nothing_changes(folder: Path) -> Iterator[None]:
    before = sorted(folder.rglob("*"))
    yield
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("verb", LEAVES)
def test_an_unknown_option_is_wrong_usage(folder: Path, verb: str) -> None:
    assert_refused(
        run(folder, verb, "--no-such-option"), ExitStatus.USAGE, "No such option", "--no-such-option"
    )


@pytest.mark.parametrize("verb", [name for name, command in LEAVES.items() if required(command)])
def test_a_missing_argument_is_wrong_usage(folder: Path, verb: str) -> None:
    done = run(folder, verb)
    assert_refused(done, ExitStatus.USAGE, "Missing ")


@pytest.mark.parametrize(
    "verb", [*(name for name in IN_CONTEXT if name not in NEEDS_NO_CONTEXT), *WITHOUT_THE_OPTION]
)
def test_without_a_stack_the_error_says_how_to_start_one(folder: Path, verb: str) -> None:
    done = run(folder, verb, *samples(LEAVES[verb]))
    assert_refused(done, ExitStatus.UNREACHABLE, "trainmaster up --detach")


@pytest.mark.parametrize("verb", IN_CONTEXT)
def test_an_unknown_context_is_wrong_usage(folder: Path, verb: str) -> None:
    done = run(folder, verb, *samples(LEAVES[verb]), "--context", "nowhere")
    assert_refused(done, ExitStatus.USAGE, "PROJECT/REGION", "nowhere")


@pytest.mark.parametrize("verb", [name for name in IN_CONTEXT if name not in NEEDS_NO_SERVICE])
def test_in_the_cloud_without_credentials_the_error_says_how_to_sign_in(folder: Path, verb: str) -> None:
    done = run(folder, verb, *samples(LEAVES[verb]), "--context", "my-project/us-central1")
    assert_refused(done, ExitStatus.UNREACHABLE, "gcloud auth application-default login")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with no_jobs() as url, served_context(folder, VERTEX_EMULATOR_HOST=url) as served:
        yield served


@pytest.mark.parametrize("verb", BY_NAME)
def test_an_unknown_name_is_not_found_and_the_error_names_the_next_command(served: Served, verb: str) -> None:
    done = served.trainmaster(*verb.split(), *samples(LEAVES[verb]))
    assert_refused(done, ExitStatus.NOT_FOUND, "nothing-has-this-name", "trainmaster ")
    for bucket in BUCKETS:
        assert not list(served.clients.storage.list_blobs(f"{PROJECT}-{bucket}"))


ODD: dict[str, tuple[str, ...]] = {
    "an empty folder of rules": ("rules", "apply", "--prune", "", "--yes"),
    "an empty file": ("submit", ""),
    "an empty file of a plan": ("plan", ""),
    "an empty machine": ("submit", "whole.yaml", "--machine", ""),
    "an empty GPU": ("submit", "whole.yaml", "--gpu", ""),
    "an empty name": ("submit", "whole.yaml", "--name", ""),
    "a key that is not UTF-8": ("submit", "whole.yaml", "--key", "\udcff"),
    "a value that is not UTF-8": ("submit", "whole.yaml", "--set", "env.A=\udcff"),
    "an argument that is not UTF-8": ("submit", "whole.yaml", "--", "\udcff"),
    "a script that is a folder elsewhere": ("submit", "whole.yaml", "--set", "script.file=/usr"),
    "a script with too long a name": ("submit", "whole.yaml", "--set", f"script.file={'x' * 300}"),
    "the session as a label": ("mcp", "--label", "session=other"),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_value_is_wrong_usage_and_nothing_is_sent(deployed: Served, case: str) -> None:
    assert_refused(deployed.trainmaster(*ODD[case]), ExitStatus.USAGE)
    for bucket in ("inbox", "data"):
        assert not list(deployed.clients.storage.list_blobs(f"{PROJECT}-{bucket}"))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("deployed"), publishes=True) as served:
        (served.folder / "whole.yaml").write_text(WHOLE)
        (served.folder / "train.py").write_text("print('trains')\n")
        yield served


@pytest.mark.parametrize("settings", ["x" * 300, "file/below"])
def test_settings_that_cannot_be_read_are_those_of_a_new_user(folder: Path, settings: str) -> None:
    done = trainmaster("ls", cwd=folder, environment={"HOME": str(folder), "TRAINMASTER_CONFIG": settings})
    assert_refused(done, ExitStatus.UNREACHABLE, "trainmaster up --detach")


def test_the_cases_cover_the_verbs() -> None:
    """A verb that names its argument in another way would silently be left out."""
    assert len(BY_NAME) >= 10, BY_NAME
    assert len(IN_CONTEXT) >= 18, IN_CONTEXT
