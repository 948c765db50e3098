"""A run again with other values, and with the checkpoints of an earlier one."""

import json
from typing import Any

import pytest
import yaml

from tests.client.served import Served, deployment, run_record
from trainmaster.client.errors import ClientRefused
from trainmaster.client.find import read_run
from trainmaster.client.submission.again import continuing, request_again
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.settings import parse_settings

RUN = "flowers-20260301t120000-ed76f2bda9"
OUTPUT = f"gs://trainmaster-local-models/flowers/{RUN}"
TEXT = "model_name: flowers\nimage: {image}\nargs: [--epochs=10]\ncluster:\n  chief: {{machine: n1-standard-4}}\n"
IMAGE = "us-central1-docker.pkg.dev/trainmaster-local/trainmaster/trainer:latest"


def start(served: Served, state: str = "succeeded", **changes: Any) -> None:
    document = run_record(state, run_id=RUN) if state != "running" else run_record(run_id=RUN, state=state)
    document["request"] |= {"model_name": "flowers", "output_uri": OUTPUT}
    document["request"]["original"]["uri"] = "gs://trainmaster-local-ledger/submitted/text.json"
    served.write("ledger", "submitted/text.json", {"text": TEXT.format(image=IMAGE)})
    served.write("ledger", f"runs/{RUN}.json", document | changes)
    served.write("ledger", "deployment.json", deployment())


def test_a_continued_run_has_the_same_request_but_for_its_settings(served: Served) -> None:
    start(served)
    served.write("models", f"flowers/{RUN}/checkpoints/7.json", {})
    run = read_run(served.clients, RUN)
    settings = (*parse_settings(["args[0]=--epochs=20"]), *continuing(served.clients, run))
    found = request_again(served.clients, run, Edits(settings=settings))
    document = yaml.safe_load(found.content)
    assert (document["args"], document["continue_from"]) == (["--epochs=20"], f"{OUTPUT}/checkpoints/")
    assert (found.object_name, found.commit) == ("requests/again/cassava.yaml", run.record.source.commit)


def test_without_settings_the_text_is_the_same(served: Served) -> None:
    start(served)
    found = request_again(served.clients, read_run(served.clients, RUN))
    assert found.content.decode() == TEXT.format(image=IMAGE)


@pytest.mark.parametrize(
    ("state", "said"), [("succeeded", "has left no checkpoint"), ("running", "has not ended")]
)
def test_what_cannot_be_continued_is_refused_with_the_repair(served: Served, state: str, said: str) -> None:
    start(served, state)
    done = served.trainmaster("again", RUN, "--continue")
    assert (done.status, said in done.err, "trainmaster" in done.err) == (2, True, True)
    with pytest.raises(ClientRefused, match=said):
        continuing(served.clients, read_run(served.clients, RUN))


def test_checkpoints_are_named_once(served: Served) -> None:
    start(served)
    done = served.trainmaster("again", RUN, "--continue", "--set", "continue_from=gs://b/c/")
    assert (done.status, "--continue and --set continue_from" in done.err) == (2, True)


def test_a_fault_of_what_continue_sets_names_that_option(served: Served) -> None:
    start(served)
    request = run_record(run_id=RUN)["request"] | {"output_uri": "gs://trainmaster-local-models/a~b"}
    request["original"]["uri"] = "gs://trainmaster-local-ledger/submitted/text.json"
    served.write("ledger", f"runs/{RUN}.json", run_record("succeeded", run_id=RUN) | {"request": request})
    served.write("models", "a~b/checkpoints/7.json", {})
    done = served.trainmaster("again", RUN, "--continue")
    assert (done.status, "--continue: $.continue_from" in done.err, "--set" in done.err) == (2, True, False)


def test_a_wrong_value_is_refused_with_its_place(served: Served) -> None:
    start(served)
    done = served.trainmaster("again", RUN, "--set", "epochs=20", "--set", "priority=900", "-o", "json")
    assert done.status == 2
    assert ("$.epochs: unknown key" in done.err, "$.priority" in done.err) == (True, True)
    assert json.loads(done.out or "[]") == []
