"""`--set`: what it changes, and what it refuses."""

from typing import Any

import pytest

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.settings import parse_settings, with_settings

REQUEST: dict[str, Any] = {"model_name": "m", "args": ["--a", "--b"], "cluster": {"chief": {"machine": "n1"}}}


def changed(*texts: str) -> dict[str, Any]:
    return with_settings(REQUEST, parse_settings(texts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model_name=other", {"model_name": "other"}),
        ("cluster.chief.machine=n2", {"cluster": {"chief": {"machine": "n2"}}}),
        ("scheduling.spot=true", {"scheduling": {"spot": True}}),
        ("scheduling.timeout_s=60", {"scheduling": {"timeout_s": 60}}),
        ("champion={metric: a, goal: minimize}", {"champion": {"metric": "a", "goal": "minimize"}}),
        ("args.0=--c", {"args": ["--c", "--b"]}),
        ("args[1]=--c=1=2", {"args": ["--a", "--c=1=2"]}),
        ("args[2]=--c", {"args": ["--a", "--b", "--c"]}),
        ("args[0]=null", {"args": ["--b"]}),
        ("args=[]", {"args": []}),
        ("env.A=", {"env": {"A": ""}}),
    ],
)
def test_a_value_is_read_as_yaml_and_replaces_what_is_there(text: str, expected: dict[str, Any]) -> None:
    assert changed(text) == {**REQUEST, **expected}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("args[0]=1.10", "1.10"),
        ("args.0=no", "no"),
        ('args[0]="1"', "1"),
        ("env.A=0x1F", "0x1F"),
        ('env.A={"a": [1, 2]}', '{"a": [1, 2]}'),
        ("env.A={", "{"),
        ("model_name=2026", "2026"),
        ("cluster.chief.env.A=1", "1"),
        ("cluster.workers.gpu=1", "1"),
    ],
)
def test_where_a_request_has_a_string_the_value_is_the_text(text: str, value: str) -> None:
    (setting,) = parse_settings([text])
    assert setting.value == value


def test_null_removes_a_key() -> None:
    assert changed("args=null", "cluster.chief=null") == {"model_name": "m", "cluster": {}}


def test_the_document_itself_stays_as_it_is() -> None:
    before = repr(REQUEST)
    changed("cluster.chief.machine=n2", "args[0]=x")
    assert repr(REQUEST) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model_name", "is not KEY=VALUE"),
        ("=x", "is not KEY=VALUE"),
        ("a..b=x", "is not KEY=VALUE"),
        ("a[x]=1", "is not KEY=VALUE"),
        ("a={", "the value is not YAML"),
        ("model_name.x=1", "there is no 'x' in 'm'"),
        ("args.x=1", "'x' is a place in a list: write [0]"),
        ("args[3]=1", "the list has 2 entries"),
        ("args[2][0]=1", "the list has 2 entries"),
        ("cluster[0]=1", "[0] is a place in a list, and there are keys: chief"),
    ],
)
def test_an_invalid_setting_is_refused(text: str, said: str) -> None:
    with pytest.raises(ClientRefused) as refused:
        changed(text)
    assert said in str(refused.value)
    assert repr(text) in str(refused.value)


def test_every_faulty_setting_is_reported() -> None:
    with pytest.raises(ClientRefused) as refused:
        changed("a", "b")
    assert len(str(refused.value).splitlines()) == 3
    with pytest.raises(ClientRefused) as refused:
        changed("args[9]=1", "model_name.x=1")
    assert len(str(refused.value).splitlines()) == 3


def test_settings_have_a_limit() -> None:
    with pytest.raises(ClientRefused, match="Found 101 settings; at most 100"):
        parse_settings(["a=1"] * 101)
