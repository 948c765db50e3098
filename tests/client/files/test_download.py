"""`trainmaster download`, on a real storage server."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.client.rule_documents import example
from tests.client.served import PROJECT, Served, run_record
from trainmaster.client.files.downloaded import LIST, read_downloaded

RUN = "flowers-20260302t081500-3f9a1c04de"
OUTPUT = f"gs://{PROJECT}-models/flowers/{RUN}"
CONTENTS = {
    "saved_model.pb": b"graph",
    "fingerprint": b"",
    "variables/index": b"index",
    "variables/data": bytes(3_000_000),
}


@pytest.fixture
def listed(served: Served) -> list[dict[str, Any]]:
    """The list of the files of a model, all in their bucket; the run's record names the list."""
    files = [uploaded(served, f"model/{path}", content) for path, content in CONTENTS.items()]
    uploaded(served, "logs/events.out.tfevents.1", b"events")
    record(served, files)
    return files


def uploaded(served: Served, path: str, content: bytes) -> dict[str, Any]:
    blob = served.clients.storage.bucket(f"{PROJECT}-models").blob(f"flowers/{RUN}/{path}")
    blob.upload_from_string(content)
    size = {"size_bytes": len(content), "generation": blob.generation, "crc32c": blob.crc32c}
    return {"path": path.removeprefix("model/"), **size}


def record(
    served: Served,
    files: list[dict[str, Any]],
    *,
    count: int | None = None,
    documents: list[dict[str, Any]] | None = None,
) -> None:
    listing = {"schema": "model_files.v1", "run_id": RUN, "model_uri": f"{OUTPUT}/model/", "files": files}
    listing |= {"documents": documents} if documents is not None else {}
    served.write("ledger", "model_files/list.json", listing)
    summary = {
        "count": len(files) if count is None else count,
        "size_bytes": sum(file["size_bytes"] for file in files),
        "listing_uri": f"gs://{PROJECT}-ledger/model_files/list.json",
        "listing_sha256": hashlib.sha256(json.dumps(listing).encode()).hexdigest(),
    }
    document = run_record(run_id=RUN)
    document["request"]["output_uri"] = OUTPUT
    served.write(
        "ledger",
        f"runs/{RUN}.json",
        {**document, "model": {"uri": f"{OUTPUT}/model/", "metrics": {}, "files": summary}},
    )


def read_files(folder: Path) -> dict[str, bytes]:
    """All files but the list of what was downloaded."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != LIST)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_model_lies_in_the_folder_whole_and_nothing_else(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    done = served.trainmaster("download", RUN)
    assert done.status == 0, done.err
    assert read_files(served.folder / RUN) == CONTENTS
    assert read_downloaded(served.folder / RUN) == set(CONTENTS)
    assert done.out.splitlines() == [f"{RUN}/{path}" for path in CONTENTS]
    assert f"trainmaster download --all {RUN}" in done.err


def test_everything_below_the_output_is_downloaded_when_asked_for(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    done = served.trainmaster("download", RUN, "to", "--all")
    assert done.status == 0, done.err
    expected = {f"model/{path}": content for path, content in CONTENTS.items()}
    assert read_files(served.folder / "to") == {**expected, "logs/events.out.tfevents.1": b"events"}


def test_a_repeated_download_continues_and_keeps_what_is_whole(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    kept = served.folder / "to" / "saved_model.pb"
    kept.parent.mkdir()
    kept.write_bytes(b"graph")
    before = kept.stat().st_ino
    assert served.trainmaster("download", RUN, "to").status == 0
    assert read_files(served.folder / "to") == CONTENTS
    assert kept.stat().st_ino == before


def test_a_file_that_differs_is_kept_and_nothing_is_downloaded(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    mine = served.folder / "to" / "saved_model.pb"
    mine.parent.mkdir()
    mine.write_bytes(b"mine!")
    done = served.trainmaster("download", RUN, "to")
    assert (done.status, done.out) == (2, "")
    assert "exists and differs" in done.err
    assert "--force" in done.err
    assert read_files(served.folder / "to") == {"saved_model.pb": b"mine!"}
    assert served.trainmaster("download", RUN, "to", "--force").status == 0
    assert read_files(served.folder / "to") == CONTENTS


def test_an_object_that_was_overwritten_since_is_a_finding_and_leaves_no_part(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    uploaded(served, "model/saved_model.pb", b"other")
    done = served.trainmaster("download", RUN, "to")
    assert done.status == 1
    assert "no longer exists as the record lists it" in done.err
    assert not [path for path in (served.folder / "to").rglob("*") if path.name.startswith(".download")]
    assert "saved_model.pb" not in read_files(served.folder / "to")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"crc32c": base64.b64encode(b"\0" * 4).decode()}, "crc32c"), ({"size_bytes": 6}, "5 bytes, not 6")],
)
def test_a_file_that_is_not_what_the_record_lists_is_a_finding(
    served: Served, listed: list[dict[str, Any]], wrong: dict[str, Any], said: str
) -> None:
    record(served, [{**listed[0], **wrong}])
    done = served.trainmaster("download", RUN, "to")
    assert done.status == 1
    assert said in done.err
    assert read_files(served.folder / "to") == {}


def test_a_list_that_was_changed_is_a_finding(served: Served, listed: list[dict[str, Any]]) -> None:
    served.write("ledger", "model_files/list.json", {"files": []})
    done = served.trainmaster("download", RUN, "to")
    assert (done.status, done.out) == (1, "")
    assert "is not the list that the run recorded" in done.err


@pytest.mark.parametrize(
    "path", ["../escaped", "/etc/escaped", "a/../../escaped", "a//b", ".", "a\\..\\b", "nul\0"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused_before_anything_is_downloaded(
    served: Served, listed: list[dict[str, Any]], path: str
) -> None:
    record(served, [*listed, {**listed[0], "path": path}])
    done = served.trainmaster("download", RUN, "to/it")
    assert (done.status, done.out) == (2, "")
    assert "cannot be a path in the folder" in done.err
    assert not (served.folder / "to").exists()


def test_a_link_that_leads_out_of_the_folder_is_refused(served: Served, listed: list[dict[str, Any]]) -> None:
    (served.folder / "elsewhere").mkdir()
    (served.folder / "to").mkdir()
    (served.folder / "to" / "variables").symlink_to(served.folder / "elsewhere")
    assert served.trainmaster("download", RUN, "to").status == 2
    assert read_files(served.folder / "elsewhere") == {}


def test_a_model_of_more_files_than_its_record_lists_is_refused(
    served: Served, listed: list[dict[str, Any]]
) -> None:
    record(served, listed, count=30_000)
    done = served.trainmaster("download", RUN, "to")
    assert (done.status, done.out) == (2, "")
    assert f"trainmaster download --all {RUN}" in done.err


def test_a_champion_is_downloaded_by_its_models_name(served: Served, listed: list[dict[str, Any]]) -> None:
    champion = example("champion.v1.promoted")
    reign = champion["current"]
    reign |= {"run_id": RUN, "model_uri": f"gs://{PROJECT}-champions/flowers/{RUN}/"}
    ledger, champions = (
        served.clients.storage.bucket(f"{PROJECT}-{name}") for name in ("ledger", "champions")
    )
    listing = ledger.blob("model_files/list.json").download_as_bytes()
    reign["lineage"] |= {
        "files_uri": f"gs://{PROJECT}-ledger/model_files/list.json",
        "files_sha256": hashlib.sha256(listing).hexdigest(),
    }
    served.write("ledger", "champions/flowers.json", champion)
    for path, content in CONTENTS.items():
        champions.blob(f"flowers/{RUN}/{path}").upload_from_string(content)
        uploaded(served, f"model/{path}", b"rewritten by another job of the team")
    done = served.trainmaster("download", "champion:flowers", "to")
    assert done.status == 0, done.err
    assert read_files(served.folder / "to") == CONTENTS
    del reign["lineage"]["files_uri"]
    served.write("ledger", "champions/flowers.json", champion)
    done = served.trainmaster("download", "champion:flowers", "again")
    assert done.status == 2
    assert f"is on record. Download what the run itself saved: trainmaster download {RUN}" in done.err


def test_the_documents_that_counted_are_downloaded_and_a_false_manifest_is_a_finding(served: Served) -> None:
    claims = [{"path": "m.pt", "size_bytes": 7, "sha256": "0" * 64}]
    files = [uploaded(served, "model/m.pt", b"weights")]
    documents = [
        uploaded(served, "model/export.json", json.dumps({"files": claims}).encode()),
        uploaded(served, "model/metrics.json", b"{}"),
    ]
    record(served, files, documents=documents)
    done = served.trainmaster("download", RUN, "to")
    assert done.status == 1
    assert "Downloading 3 files, " in done.err
    assert " to to. Beside the model's 1 file: export.json, metrics.json.\n" in done.err
    assert sorted(read_files(served.folder / "to")) == ["export.json", "m.pt", "metrics.json"]
    assert "The model's manifest is wrong about m.pt: sha256 " in done.err
    assert f"not {'0' * 64}, as export.json says" in done.err


@pytest.mark.parametrize("words", [["champion:unknown"], ["unknown"], ["failed"]])
def test_a_run_or_champion_without_a_model_is_not_found(served: Served, words: list[str]) -> None:
    served.write("ledger", "runs/failed.json", run_record("failed", run_id="failed"))
    done = served.trainmaster("download", *words)
    assert (done.status, done.out) == (3, "")
    assert "trainmaster" in done.err


def test_the_name_of_a_champion_that_no_run_has_is_recognized(served: Served) -> None:
    served.write("ledger", "champions/house.json", example("champion.v1.promoted"))
    done = served.trainmaster("download", "house")
    assert done.status == 3
    assert "\nThe champion of that name: trainmaster download champion:house" in done.err
    assert "champion:" not in served.trainmaster("download", "home").err


def test_without_a_model_the_command_for_all_that_a_run_wrote_is_named(served: Served) -> None:
    failed = run_record("failed", run_id=RUN)
    failed["request"]["output_uri"] = OUTPUT
    served.write("ledger", f"runs/{RUN}.json", failed)
    uploaded(served, "checkpoints/1", b"weights")
    said = served.trainmaster("download", RUN).err
    assert f"For what it wrote, if anything: trainmaster download --all {RUN}" in said
    assert served.trainmaster("download", "--all", RUN).status == 0


def test_a_folder_that_cannot_be_written_is_wrong_usage(served: Served, listed: list[dict[str, Any]]) -> None:
    (served.folder / "file").touch()
    done = served.trainmaster("download", RUN, "file/below")
    assert (done.status, done.out) == (2, "")
    assert "Cannot write" in done.err
