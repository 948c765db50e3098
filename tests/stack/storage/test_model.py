"""The emulator against a dictionary: any order of uploads, deletions, and files that come and go."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from trainstack.storage import serve

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "a/b", "a/b/c", "d/e", "d/f", "d//g", "h/", "i"])
PLAIN = st.sampled_from(["a", "a/b", "a/b/c", "d/e", "d/f", "i"])
CONTENTS = st.sampled_from([b"", b"x", b"yy", b"zz"])
CONDITIONS = st.sampled_from(["none", "absent", "present", "match", "stale"])

_numbers = itertools.count()


@dataclass
class Known:
    """What the model knows of an object; the generation of a dropped file is read when it is first needed."""

    content: bytes
    generation: int | None


class Objects(RuleBasedStateMachine):
    def __init__(self, http: httpx.Client, directory: Path) -> None:
        super().__init__()
        self.http = http
        number = next(_numbers)
        self.bucket = f"model-{number}"
        self.keeps_versions = number % 2 == 1
        body = {"name": self.bucket, "versioning": {"enabled": self.keeps_versions}}
        http.post("/storage/v1/b?project=p", json=body).raise_for_status()
        self.folder = directory / "buckets" / self.bucket
        self.model: dict[str, Known] = {}
        self.old: dict[tuple[str, int], bytes] = {}

    def generation(self, name: str) -> int:
        known = self.model.get(name)
        if known is None:
            return 0
        if known.generation is None:
            known.generation = int(self.get(name).json()["generation"])
        return known.generation

    def get(self, name: str, **query: object) -> httpx.Response:
        path = f"/storage/v1/b/{self.bucket}/o/{name.replace('/', '%2F')}"
        return self.http.get(path, params={key: str(value) for key, value in query.items()})

    def condition(self, kind: str, name: str) -> tuple[dict[str, str], bool]:
        """A query, and whether it holds of the model."""
        live = self.generation(name)
        match kind:
            case "absent":
                return {"ifGenerationMatch": "0"}, live == 0
            case "present":
                return {"ifGenerationNotMatch": "0"}, live != 0
            case "match":
                return {"ifGenerationMatch": str(live)}, True
            case "stale":
                return {"ifGenerationMatch": str(live + 1)}, False
            case _:
                return {}, True

    def retire(self, name: str, generation: int) -> None:
        if name in self.model and self.keeps_versions:
            self.old[name, generation] = self.model[name].content

    @rule()
    def read_old(self) -> None:
        for (name, generation), content in self.old.items():
            assert self.get(name, alt="media", generation=generation).content == content
        answer = self.http.get(f"/storage/v1/b/{self.bucket}/o", params={"versions": "true"}).json()
        listed = {(each["name"], int(each["generation"])) for each in answer.get("items", [])}
        assert listed == {*self.old, *((name, self.generation(name)) for name in self.model)}

    @rule(name=NAMES, content=CONTENTS, kind=CONDITIONS)
    def put(self, name: str, content: bytes, kind: str) -> None:
        query, holds = self.condition(kind, name)
        before = self.generation(name)
        answer = self.http.post(
            f"/upload/storage/v1/b/{self.bucket}/o",
            params={"uploadType": "media", "name": name, **query},
            content=content,
        )
        assert answer.status_code == (200 if holds else 412)
        if holds:
            self.retire(name, before)
            generation = int(answer.json()["generation"])
            assert generation > before
            self.model[name] = Known(content, generation)

    @rule(name=NAMES, kind=CONDITIONS)
    def delete(self, name: str, kind: str) -> None:
        query, holds = self.condition(kind, name)
        before = self.generation(name)
        answer = self.http.delete(f"/storage/v1/b/{self.bucket}/o/{name.replace('/', '%2F')}", params=query)
        if name not in self.model:
            assert answer.status_code == 404
        else:
            assert answer.status_code == (204 if holds else 412)
            if holds:
                self.retire(name, before)
                del self.model[name]

    @rule(name=PLAIN, content=CONTENTS)
    def drop(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if path.is_dir() or any(parent.is_file() for parent in path.parents):
            return  # the file system has no place for it
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.model[name] = Known(content, None)

    @rule(name=PLAIN)
    def remove(self, name: str) -> None:
        if (self.folder / name).is_file():
            (self.folder / name).unlink()
            del self.model[name]

    @rule(name=NAMES)
    def read(self, name: str) -> None:
        answer = self.get(name, alt="media")
        if name in self.model:
            assert (answer.status_code, answer.content) == (200, self.model[name].content)
            assert int(answer.headers["x-goog-generation"]) == self.generation(name)
            assert self.get(name, ifGenerationNotMatch=self.generation(name)).status_code == 304
        else:
            assert answer.status_code == 404

    @rule(prefix=st.sampled_from(["", "a", "a/", "d/", "d//", "z"]))
    def list_below(self, prefix: str) -> None:
        listed = (
            self.http.get(f"/storage/v1/b/{self.bucket}/o", params={"prefix": prefix}).json().get("items", [])
        )
        assert [each["name"] for each in listed] == sorted(
            name for name in self.model if name.startswith(prefix)
        )

    @invariant()
    def all_are_listed(self) -> None:
        answer = self.http.get(f"/storage/v1/b/{self.bucket}/o", params={"maxResults": "1000"}).json()
        found = {each["name"]: int(each["size"]) for each in answer.get("items", [])}
        assert found == {name: len(known.content) for name, known in self.model.items()}


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    with serve(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def test_the_emulator_agrees_with_a_dictionary(http: httpx.Client, tmp_path: Path) -> None:
    class Served(Objects):
        def __init__(self) -> None:
            super().__init__(http, tmp_path)

    run_state_machine_as_test(
        Served,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
