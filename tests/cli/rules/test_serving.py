"""`trainmaster models deploy` on a real EndpointService, of versions that the registry has."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.served import PROJECT, Served, deployment, served_context
from tests.command import Done
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT, RUN_LABEL
from trainstack.vertex import Jobs, serve

pytestmark = pytest.mark.slow  # the client first asks after an operation when a second has passed

PLACE = f"projects/{PROJECT}/locations/us-central1"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("serving")
    jobs = Jobs(
        dir=folder / "jobs", buckets_dir=folder / "buckets", images=dict, write_log=lambda _: None, project=PROJECT
    )  # fmt: skip
    with (
        serve(jobs) as url,
        served_context(
            folder, publishes=True, VERTEX_EMULATOR_HOST=url, TRAINMASTER_DEPLOYMENTS="stage"
        ) as served,
    ):
        yield served


def register(context: Served, model: str, run: str, image: str = "serving") -> None:
    """Another version, with the alias of the champion."""
    models: Any = context.clients.vertex("model_service")
    known = [each.name.rpartition("/")[2] for each in models.list_models(parent=PLACE)]
    where = {"parent_model" if model in known else "model_id": model}
    version = {"display_name": model, "labels": {RUN_LABEL: run}, "version_aliases": ["champion"]}
    container = {"container_spec": {"image_uri": image}} if image else {}
    models.upload_model(request={"parent": PLACE, "model": version | container, **where}).result()


def run(context: Served, words: str) -> Done:
    return context.trainmaster("models", *words.split())


def shares(context: Served, words: str) -> dict[str, tuple[int, int | None]]:
    """By version, the traffic before and after what the words would do."""
    done = run(context, f"{words} -o json")
    assert done.status == 0, done.err
    return {row["version"]: (row["traffic"], row["traffic_after"]) for row in json.loads(done.out)["models"]}


def test_a_champion_is_deployed_takes_the_traffic_gives_it_back_and_goes(context: Served) -> None:
    register(context, "line", "line-1")
    plan = run(context, "deploy line")
    assert (plan.status, "add --yes" in plan.err) == (0, True)
    assert plan.out.split()[:7] == ["ID", "VERSION", "MACHINE", "REPLICAS", "TRAFFIC", "THEN", "COST"]
    assert re.search(r"\d{10}  line@1 +n1-standard-2 +1 +0 % +100 % +79.75 USD a month\n", plan.out)
    assert "costs around the clock (79.75 USD a month), outside the policy's caps." in plan.err
    assert list(context.clients.vertex("endpoint_service").list_endpoints(parent=PLACE)) == []
    begun = run(context, "deploy line --yes")
    assert (begun.status, "/endpoints/line/operations/" in begun.err) == (0, True), begun.err
    again = run(context, "deploy line --yes")
    assert (again.status, " is under way, in the cloud" in again.err) == (2, True), again.err
    register(context, "line", "line-2")  # takes as long as the operation
    assert shares(context, "deploy line --version 1") == {"line@1": (100, 100)}
    assert "nothing to change" in run(context, "deploy line --version 1 --yes").err
    assert shares(context, "deploy line --traffic 30") == {"line@1": (100, 70), "line@2": (0, 30)}
    assert run(context, "deploy line --min 2 --max 4 --machine-type e2-standard-4 --wait --yes").status == 0
    assert shares(context, "deploy line --back") == {"line@1": (0, 100), "line@2": (100, 0)}
    other = run(context, "deploy line --machine-type e2-standard-2 --yes")
    assert (other.status, "on other machines; undeploy it first" in other.err) == (2, True), other.err
    assert run(context, "deploy line --back --yes").status == 0
    assert "On line no model was deployed before" in run(context, "deploy line --back").err
    assert shares(context, "deploy line --undeploy") == {"line@1": (100, 100), "line@2": (0, None)}
    gone = run(context, "deploy line --undeploy --yes")
    assert (gone.status, re.search(r"line@2 .* undeployed +-\n", gone.out) is not None) == (0, True), gone.out
    assert "On line no model was deployed before" in run(context, "deploy line --back").err
    gone = run(context, "deploy line --undeploy-all --yes")
    assert (gone.status, "around the clock" in gone.err) == (0, False)
    assert shares(context, "deploy line --undeploy-all") == {}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("deploy nothing", 3, "'nothing' has no champion"),
        ("deploy bare", 2, "bare@champion has no container image"),
        ("deploy cat --endpoint 42", 3, "endpoints/42 does not exist"),
        ("deploy cat --endpoint A_b", 2, "'A_b' cannot be an endpoint"),
        ("deploy cat --machine-type n1-standard-3", 2, "'n1-standard-3' serves models"),
        ("deploy cat --machine-type m1-ultramem-40", 2, "'m1-ultramem-40' serves models"),
        ("deploy cat --machine-type g2-standard-4", 2, "g2-standard-4 has accelerators"),
        ("deploy cat --accelerator L4:3", 2, "--accelerator: "),
        ("deploy cat --min 3 --max 2", 2, "--max 2 is less than --min 3"),
        ("deploy cat --traffic 40", 2, "takes the other 60 % of the traffic"),
        ("deploy cat --undeploy --traffic 40 --min 2", 2, "--traffic, --min: leave this out with --undeploy"),
        ("deploy cat --back", 2, "On cat no model was deployed before the newest"),
        ("deploy", 2, "Missing argument 'MODEL'"),
    ],
)
def test_what_cannot_be_deployed_is_refused_in_one_sentence(
    context: Served, words: str, status: int, said: str
) -> None:
    if "/cat" not in str(context.clients.vertex("model_service").list_models(parent=PLACE)):
        register(context, "cat", "cat-1")
        register(context, "bare", "bare-1", image="")
    done = run(context, words)
    assert (done.status, said in done.err) == (status, True), done


def test_an_endpoint_of_another_model_serves_this_one_only_where_it_is_named(context: Served) -> None:
    register(context, "other", "other-1")
    assert run(context, "deploy other --endpoint mine --wait --yes").status == 0
    assert "mine serves other; choose" in run(context, "deploy mine").err
    assert shares(context, "deploy other --endpoint mine") == {"other@1": (100, 100)}


def test_a_deployment_with_a_name_serves_its_own_models(context: Served) -> None:
    register(context, "stage__tree", "tree-1")
    context.clients.storage.create_bucket(f"{PROJECT}-stage-ledger")
    context.write("stage-ledger", DEPLOYMENT_OBJECT, deployment())
    assert "Endpoint stage--tree-" in run(context, "deploy tree --context local/stage").err


def test_a_gpu_chooses_the_machine_and_a_price_that_is_unknown_is_said(context: Served) -> None:
    register(context, "gpu", "gpu-1")
    assert "g2-standard-4 with 1 NVIDIA_L4" in run(context, "deploy gpu --accelerator L4").out
    unknown = run(context, "deploy gpu --machine-type c3-highcpu-4")
    assert ("price unknown" in unknown.out, "(price unknown)" in unknown.err) == (True, True)


def test_without_a_verb_models_are_listed(context: Served) -> None:
    for words in ("", "-o json", "ls"):
        assert run(context, words).status == 0
    assert "No such command 'deply'. Did you mean 'deploy'?" in run(context, "deply").err
