"""The context is chosen by flag, variable, kept choice and running stack, in this order."""

import fcntl
from pathlib import Path

import pytest

from tests.ready_stack import stack_on
from trainmaster.client.clients import Clients
from trainmaster.client.context import (
    Context,
    NoContext,
    UnknownContext,
    choose_context,
    context_in_cloud,
    keep_choice,
    kept_choice,
    refuse_elsewhere,
)
from trainmaster.orchestrator.core.deployment_names import account_email
from trainmaster.resources import TOPOLOGY, parse_topology
from trainstack.find import register_stack


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "settings"


def test_the_flag_beats_the_variable_which_beats_the_kept_choice(tmp_path: Path, settings: Path) -> None:
    keep_choice("kept-project/us-central1", settings)
    variable = {"TRAINMASTER_CONTEXT": "variable-project/us-east1"}

    def chosen(name: str | None, environment: dict[str, str]) -> tuple[str, str]:
        context = choose_context(name, environment, directory=tmp_path, settings=settings)
        return context.name, context.chosen_by

    assert chosen("flag-project/us-west1", variable) == ("flag-project/us-west1", "chosen by --context")
    assert chosen(None, variable) == ("variable-project/us-east1", "chosen by TRAINMASTER_CONTEXT")
    assert chosen(None, {}) == ("kept-project/us-central1", "chosen by trainmaster context use")


def test_a_forgotten_choice_gives_way_to_the_stack_that_runs(tmp_path: Path, settings: Path) -> None:
    keep_choice("kept-project/us-central1", settings)
    keep_choice(None, settings)
    assert kept_choice(settings) is None
    with stack_on(tmp_path / "work" / ".trainmaster") as state:
        below = tmp_path / "work" / "src"
        below.mkdir()
        context = choose_context(None, {}, directory=below, settings=settings)
    assert (context.state, context.project, context.ledger_bucket) == (state, "local-project", "ledger")
    assert context.name == f"local:{state}"


def test_a_stack_of_another_folder_is_found_if_it_is_the_only_one(tmp_path: Path, settings: Path) -> None:
    with stack_on(tmp_path / "far" / "state") as state:
        register_stack(state, settings)
        register_stack(tmp_path / "long-gone", settings)
        found = choose_context(None, {}, directory=tmp_path / "here", settings=settings)
    assert found.state == state
    with pytest.raises(NoContext) as refused:
        refuse_elsewhere(found)
    assert str(refused.value) == (
        f"No stack of this folder is running, and the one of '{tmp_path / 'far'}' is not changed from here.\n"
        f"Use that stack: --context local:{state}\n"
        "Start one here: trainmaster up --detach"
    )


@pytest.mark.parametrize("state", [".trainmaster", ".trainmaster/demo", "state"])
@pytest.mark.parametrize("below", [".", "src"])
def test_a_stack_of_this_folder_or_of_a_parent_may_be_changed(
    state: str, below: str, tmp_path: Path, settings: Path
) -> None:
    folder = tmp_path / "work"
    (folder / below).mkdir(parents=True)
    with stack_on(folder / state) as running:
        register_stack(running, settings)
        refuse_elsewhere(choose_context(None, {}, directory=folder / below, settings=settings))


def test_a_chosen_stack_of_another_folder_may_be_changed(tmp_path: Path, settings: Path) -> None:
    with stack_on(tmp_path / "far" / "state") as state:
        register_stack(state, settings)
        variable = {"TRAINMASTER_CONTEXT": f"local:{state}"}
        for name, environment in ((f"local:{state}", {}), ("local", {}), (None, variable)):
            refuse_elsewhere(
                choose_context(name, environment, directory=tmp_path / "here", settings=settings)
            )
        keep_choice(f"local:{state}", settings)
        refuse_elsewhere(choose_context(None, {}, directory=tmp_path / "here", settings=settings))


def test_the_folder_of_a_stack_names_its_stack_too(tmp_path: Path, settings: Path) -> None:
    house = tmp_path / "house"
    with stack_on(house / ".trainmaster") as state:
        for name in (f"local:{house}", f"local:{state}", "local:house"):
            assert choose_context(name, {}, directory=tmp_path, settings=settings).name == f"local:{state}"


def test_a_folder_is_named_without_the_way_to_it(tmp_path: Path, settings: Path) -> None:
    (tmp_path / "here").mkdir()
    with stack_on(tmp_path / "there" / ".trainmaster") as there:
        for text in ("local:../there", "local:../here/../there/.trainmaster"):
            found = choose_context(text, {}, directory=tmp_path / "here", settings=settings)
            assert found.state == there
        (tmp_path / "far").mkdir()
        (tmp_path / "here" / "link").symlink_to(tmp_path / "far")
        linked = choose_context("local:link/../there", {}, directory=tmp_path / "here", settings=settings)
        assert linked.state == there, "a link's parent is that of its target"


def test_where_no_stack_runs_the_suggested_state_folder_is_not_the_project(
    tmp_path: Path, settings: Path
) -> None:
    house = tmp_path / "house"
    house.mkdir()
    (house / "fit.py").touch()
    with pytest.raises(NoContext) as refused:
        choose_context(f"local:{house}", {}, directory=tmp_path, settings=settings)
    assert f"trainmaster up --detach --state {house}/.trainmaster\n" in str(refused.value)


@pytest.mark.parametrize("name", [None, "local"])
def test_another_stack_never_replaces_the_stopped_one_of_this_folder(
    name: str | None, tmp_path: Path, settings: Path
) -> None:
    here = tmp_path / "here"
    stopped = here / ".trainmaster"
    (here / "src").mkdir(parents=True)
    stopped.mkdir()
    (stopped / "project.json").touch()
    with pytest.raises(NoContext, match=f"'{stopped}', is not running.*up --detach --state {stopped}\n"):
        choose_context(name, {}, directory=here / "src", settings=settings)
    with stack_on(tmp_path / ".trainmaster") as parent, stack_on(tmp_path / "far") as far:
        for other in (far, parent):
            register_stack(other, settings)
        for folder, start in ((here, ""), (here / "src", f" --state {stopped}")):
            with pytest.raises(NoContext) as refused:
                choose_context(name, {}, directory=folder, settings=settings)
            assert str(refused.value) == (
                f"The stack of this folder, '{stopped}', is not running. Start it: trainmaster up --detach{start}\n"
                f"To use another:\n  --context local:{parent}"
            )
        assert choose_context(f"local:{far}", {}, directory=here, settings=settings).state == far
    with stack_on(stopped / "demo") as demo, stack_on(tmp_path / "far2") as other:
        register_stack(other, settings)
        assert choose_context(name, {}, directory=here, settings=settings).state == demo


@pytest.mark.parametrize(
    ("below", "chosen_by"), [(".", "the stack of this folder"), ("src", "the stack of a parent folder")]
)
def test_of_several_stacks_the_nearest_folders_is_chosen_whatever_its_states_name_is(
    below: str, chosen_by: str, tmp_path: Path, settings: Path
) -> None:
    folder = tmp_path / "work"
    (folder / below).mkdir(parents=True)
    with (
        stack_on(folder / "mystack") as own,
        stack_on(tmp_path / ".trainmaster") as parents,
        stack_on(tmp_path / "far" / "state") as far,
    ):
        for each in (own, parents, far):
            register_stack(each, settings)
        found = choose_context(None, {}, directory=folder / below, settings=settings)
    assert (found.state, found.chosen_by, found.is_elsewhere) == (own, chosen_by, False)


def test_two_stacks_are_not_chosen_between_and_both_are_named(tmp_path: Path, settings: Path) -> None:
    folder = tmp_path / ".trainmaster"
    with stack_on(folder / "demo") as one, stack_on(folder / "demo-tuning") as other:
        with pytest.raises(NoContext) as refused:
            choose_context("local", {}, directory=tmp_path, settings=settings)
        assert f"--context local:{one}" in str(refused.value)
        assert f"--context local:{other}" in str(refused.value)
        assert choose_context(f"local:{other}", {}, directory=tmp_path, settings=settings).state == other


@pytest.mark.parametrize("name", [None, "local", "local:DIR"])
def test_without_a_stack_the_refusal_says_how_to_start_one(
    name: str | None, tmp_path: Path, settings: Path
) -> None:
    with pytest.raises(NoContext, match="trainmaster up --detach"):
        choose_context(name and name.replace("DIR", str(tmp_path)), {}, directory=tmp_path, settings=settings)


@pytest.mark.parametrize("name", [None, "local", "local:."])
@pytest.mark.parametrize("has_other", [False, True])
def test_a_stack_that_is_starting_is_not_reported_as_missing(
    name: str | None, tmp_path: Path, settings: Path, *, has_other: bool
) -> None:
    state = tmp_path / ".trainmaster"
    state.mkdir()
    (state / "project.json").touch()
    with (state / "lock").open("wb") as lock, stack_on(tmp_path / "far" / ".trainmaster") as far:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if has_other:
            register_stack(far, settings)
        with pytest.raises(NoContext, match=f"The stack on '{state}' is starting or stopping. Run this "):
            choose_context(name, {}, directory=tmp_path, settings=settings)


def test_a_stack_that_was_killed_is_reported_as_gone(tmp_path: Path, settings: Path) -> None:
    with stack_on(tmp_path / "state") as state:
        pass
    with pytest.raises(NoContext, match="no longer answers"):
        choose_context(f"local:{state}", {}, directory=tmp_path, settings=settings)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        *((text, ["PROJECT/REGION"]) for text in ("Local", "project", "project/", "/us-central1", "/")),
        ("foo/us-central1", ["'foo' is not a project id, which has 6 to 30 lower-case letters"]),
        ("A project/us-central1", ["'A project' is not a project id"]),
        ("my-project/bar", ["'bar' is not a region, such as us-central1."]),
        ("foo/bar", ["'foo' is not a project id", "'bar' is not a region"]),
        *(
            (text, [f"{name!r} is not the name of a deployment: expected 1 to 6 lower-case letters"])
            for name in ("", "Stage", "1st", "staging", "a-b", "a/b")
            for text in (f"my-project/us-central1/{name}", f"local/{name}", f"local/{name}:.")
        ),
        ("local:a\0b", ["null byte"]),
        ("local:~no-such-user/a", ["home directory"]),
        ("my-project/here/a_b", ["'here' is not a region", "'a_b' is not the name"]),
    ],
)
def test_a_context_that_cannot_be_one_is_refused_with_what_is_wrong_and_what_chose_it(
    text: str, wrong: list[str], tmp_path: Path, settings: Path
) -> None:
    with pytest.raises(UnknownContext) as refused:
        choose_context(text, {}, directory=tmp_path, settings=settings, named_by="context use")
    message = str(refused.value)
    assert message.startswith(f"There is no context {text!r}, chosen by context use. ")
    assert all(each in message for each in wrong)


@pytest.mark.parametrize("name", ["", "stage"])
def test_the_names_of_a_deployment_are_those_of_the_topology(name: str) -> None:
    topology = parse_topology(TOPOLOGY, project="my-project", region="us-central1", deployment=name)
    cloud = context_in_cloud("my-project", "us-central1", name)
    assert topology["buckets"] == {
        "inbox": cloud.inbox_bucket,
        "ledger": cloud.ledger_bucket,
        "models": cloud.models_bucket,
        "champions": cloud.champions_bucket,
        "data": cloud.data_bucket,
    }
    account = topology["environment"]["TRAINMASTER_TRAINER_ACCOUNT"]
    assert account == account_email("trainer", cloud.project, cloud.prefix)
    assert topology["environment"]["TRAINMASTER_DEPLOYMENT"] == cloud.deployment == name
    assert topology["prefix"] == cloud.prefix
    with Clients(cloud) as clients:
        assert clients.requests_topic.endswith(f"/topics/{topology['topics']['requests']}")


def test_a_deployment_is_named_after_its_place(tmp_path: Path, settings: Path) -> None:
    def chosen(text: str) -> Context:
        return choose_context(text, {}, directory=tmp_path, settings=settings)

    cloud = chosen("my-project/us-central1/stage")
    assert (cloud.name, cloud.ledger_bucket) == ("my-project/us-central1/stage", "my-project-stage-ledger")
    with stack_on(tmp_path / ".trainmaster") as state:
        for text in ("local/stage", f"local/stage:{state}"):
            found = chosen(text)
            assert (found.name, found.state) == (f"local/stage:{state}", state)
            assert found.ledger_bucket == "local-project-stage-ledger"
            assert found.logging_host == chosen("local").logging_host
        assert chosen("local").ledger_bucket == "ledger"
        with pytest.raises(
            NoContext, match=r"does not run the deployment prod\. Stop it.* --name stage --name prod$"
        ):
            chosen("local/prod")
