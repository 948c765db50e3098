"""Short names of runs, on a real storage server: parts of ids, `latest`, and files called request.yaml."""

from dataclasses import replace

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import Served, run_record
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import find_run
from trainmaster.client.runs.origin import inbox_name

ENDS = ("ed76f2bda9", "ed76aa0001", "00beefbda9")


@pytest.fixture
def ids(served: Served) -> list[str]:
    ids = [f"flowers-2026030{day}t120000-{end}" for day, end in enumerate(ENDS, 1)]
    for number, run_id in enumerate(ids):
        served.write("ledger", f"runs/{run_id}.json", run_record(run_id=run_id))
        write_row(served, replace(row(number), run_id=run_id))
    return ids


@pytest.mark.parametrize(("text", "number"), [("ed76f2", 0), ("ed76f2bda9", 0), ("aa0001", 1), ("00be", 2)])
def test_a_part_of_the_end_of_an_id_names_its_run(
    served: Served, ids: list[str], text: str, number: int
) -> None:
    assert find_run(served.clients, text).record.run_id == ids[number]
    assert find_run(served.clients, text, is_to_change=True).record.run_id == ids[number]


def test_a_part_of_several_ids_is_refused_with_all_of_them(served: Served, ids: list[str]) -> None:
    with pytest.raises(NotFound, match="'bda9' is part of 2 ids") as refused:
        find_run(served.clients, "bda9")
    assert (ids[0] in str(refused.value), ids[2] in str(refused.value)) == (True, True)


@pytest.mark.parametrize("text", ["ed7", "f2bd", "flowers", "ED76F2"])
def test_other_parts_name_no_run(served: Served, ids: list[str], text: str) -> None:
    with pytest.raises(NotFound):
        find_run(served.clients, text)
    assert ids


def test_latest_is_the_newest_run_and_in_a_project_is_not_changed(served: Served, ids: list[str]) -> None:
    for is_to_change in (False, True):
        assert find_run(served.clients, "latest", is_to_change=is_to_change).record.run_id == ids[2]
    served.clients.context = replace(served.clients.context, state=None)
    with pytest.raises(ClientRefused, match=ids[2]):
        find_run(served.clients, "latest", is_to_change=True)


def test_a_name_that_a_model_has_too_says_so(served: Served, ids: list[str]) -> None:
    served.write("ledger", "status/keys/cassava.json", {"run_id": ids[0], "state": "succeeded"})
    done = served.trainmaster("status", "cassava", "-o", "name")
    assert done.out == f"{ids[0]}\n"
    assert f"'cassava' is a file or message here, and a model too, whose latest run is {ids[2]}." in done.err


@pytest.mark.parametrize(
    ("file", "model", "name"),
    [
        ("request.yaml", "churn", "churn.yaml"),
        ("Request.JSON", "churn", "churn.JSON"),
        ("request.yaml", "../Ärger", "rger.yaml"),
        ("request.yaml", None, "request.yaml"),
        ("requests.yaml", "churn", "requests.yaml"),
        ("churn-large.yaml", "churn", "churn-large.yaml"),
        ("request", "churn", "request"),
    ],
)
def test_a_file_with_a_general_name_is_called_after_its_model(
    file: str, model: str | None, name: str
) -> None:
    assert inbox_name(file, model) == name


def test_the_file_finds_its_run_by_its_model(served: Served, ids: list[str]) -> None:
    (served.folder / "request.yaml").write_text("model_name: cassava-resnet50\n")
    status = {"run_id": ids[1], "state": "succeeded"}
    served.write("ledger", "status/requests/cassava-resnet50.yaml.json", status)
    assert served.trainmaster("status", "request.yaml", "-o", "name").out == f"{ids[1]}\n"
