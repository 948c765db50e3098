"""Which weights a model starts from, with a server on loopback in place of the public one."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.staticfiles import StaticFiles

from trainer.faults import Unusable
from trainer.images.weights import Pretrained, starting_weights
from trainer.survive import warn_of_fallback
from trainstack.http import in_thread, serving
from trainstack.process.ports import free_ports

CONTENT = b"weights"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory whose cache is empty, and no proxy between here and loopback."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "home"


@pytest.fixture
def public(tmp_path: Path, home: Path) -> Iterator[Pretrained]:
    folder = tmp_path / "public"
    folder.mkdir()
    (folder / "w.h5").write_bytes(CONTENT)
    with in_thread(lambda: serving(StaticFiles(directory=folder))) as url:
        yield Pretrained(name="imagenet", url=f"{url}/w.h5", md5=hashlib.md5(CONTENT).hexdigest())


@pytest.mark.parametrize("choice", ["auto", "imagenet"])
def test_public_weights_are_fetched_once_and_kept(public: Pretrained, choice: str, home: Path) -> None:
    first = starting_weights(choice, public, {})
    assert first.label == "imagenet"
    assert first.path is not None
    assert first.path.read_bytes() == CONTENT
    gone = replace(public, url=public.url.replace("http://127.0.0.1", "http://127.0.0.2"))
    assert starting_weights(choice, gone, {}).path == first.path
    assert [path.name for path in first.path.parent.iterdir()] == ["w.h5"]


JOB = {"AIP_MODEL_DIR": "gs://models/run-1/model/"}


def unreachable() -> Pretrained:
    return Pretrained(name="imagenet", url=f"http://127.0.0.1:{free_ports(1)[0]}/w.h5", md5="")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("choice", "environment"), [("auto", JOB), ("imagenet", {})])
def test_a_job_of_the_service_and_a_run_that_names_the_weights_fail_without_them(
    choice: str, environment: dict[str, str]
) -> None:
    with pytest.raises(
        Unusable, match=rf"--weights={choice}: .* is unreachable .*Use --weights=PATH .*or --weights=random"
    ):
        starting_weights(choice, unreachable(), environment)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "environment", [{}, JOB | {"TRAINMASTER_STACK": "token:1"}], ids=["own", "local stack"]
)
def test_a_run_outside_the_service_falls_back_to_random_weights_with_the_reason(
    environment: dict[str, str],
) -> None:
    found = starting_weights("auto", unreachable(), environment)
    assert (found.label, found.path) == ("random", None)
    assert "imagenet is unreachable" in found.because


@pytest.mark.usefixtures("home")
def test_random_values_in_place_of_public_weights_are_a_warning_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = unreachable()
    warn_of_fallback(starting_weights("random", missing, {}), "chief-0")
    warn_of_fallback(starting_weights("auto", None, {}), "chief-0")
    assert capsys.readouterr().out == ""
    warn_of_fallback(starting_weights("auto", missing, {}), "chief-0")
    event = json.loads(capsys.readouterr().out)
    assert (event["event"], event["severity"]) == ("random_weights", "WARNING")
    assert event["message"].startswith("chief-0 starts from random weights: imagenet is unreachable")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("choice", ["auto", "imagenet"])
def test_a_run_that_continues_from_a_checkpoint_needs_no_public_weights(choice: str) -> None:
    found = starting_weights(choice, unreachable(), JOB, has_checkpoint=lambda: True)
    assert found.path is None
    assert "the checkpoint's replace them" in found.because


def test_content_with_another_hash_is_not_used_and_not_kept(public: Pretrained, home: Path) -> None:
    found = starting_weights("auto", replace(public, md5="0" * 32), {})
    assert found.label == "random"
    assert "md5" in found.because
    assert list((home / ".keras" / "models").iterdir()) == []


def test_a_local_weights_file_keeps_its_given_name(tmp_path: Path, home: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.h5").write_bytes(CONTENT)
    found = starting_weights("gs://b/mine.h5", None, {"TRAINMASTER_GCS_ROOT": str(tmp_path)})
    assert (found.label, found.path) == ("gs://b/mine.h5", tmp_path / "b" / "mine.h5")
    with pytest.raises(Unusable, match="no such file '/nowhere'"):
        starting_weights("/nowhere", None, {})
