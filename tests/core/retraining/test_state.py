"""The memory of a rule: every matching object is counted once, and the state stays small whatever comes."""

import functools
import json
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.retraining_cases import DAY, NOON, SECOND, arrived, batch, fresh, pictures, rule
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import decoded, encoded, json_bytes
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.retraining.arrivals import (
    ArrivedObject,
    Batch,
    batch_object,
    encoded_batch,
    parse_arrived_object,
    parse_batch,
)
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.rule import state_object
from trainmaster.orchestrator.core.retraining.state import (
    KEPT_BATCHES,
    KEPT_IDENTITIES,
    KEPT_MET,
    KEPT_SIGNALS,
    DueFiring,
    Fired,
    Firing,
    HeldBack,
    RuleState,
    given_up,
    has_seen,
    state_for,
    with_launch,
    with_seen,
)
from trainmaster.orchestrator.core.retraining.waiting import (
    FOLDERS_MAX,
    FOLDERS_MAX_CHARS,
    NEWEST_MAX,
    counted_by,
    total_of,
    with_arrivals,
)
from trainmaster.orchestrator.core.sizes import MAX_STATE_BYTES

WATCHING = rule(
    {"new_data": {"objects": "gs://data-1/cassava/**"}}, {"new_data": {"objects": "gs://data-1/**/*.jpg"}}
)
EVERYTHING = rule({"new_data": {"objects": "gs://data-1/"}})

objects = st.builds(
    ArrivedObject,
    bucket=st.sampled_from(["data-1", "data-2"]),
    name=st.sampled_from(["cassava/a.jpg", "cassava/b.txt", "other/c.jpg", "other/d.txt", "cassava/"]),
    generation=st.integers(1, 3),
    size_bytes=st.integers(1, 100),
    created_at=st.integers(0, 50).map(lambda seconds: NOON + seconds * SECOND),
)


def counts(state: RuleState) -> Any:
    return (state.waiting, state.newest)


@settings(max_examples=200)
@given(items=st.lists(objects, max_size=12, unique_by=lambda each: each.identity), seed=st.integers(0, 1000))
def test_objects_count_the_same_in_any_order_and_number(items: list[ArrivedObject], seed: int) -> None:
    plain = with_arrivals(fresh(WATCHING), WATCHING, [batch("all", items)])
    dice = random.Random(seed)
    delivered = items + [dice.choice(items) for _ in range(dice.randint(0, 8)) if items]
    dice.shuffle(delivered)
    state = fresh(WATCHING)
    written: list[Batch] = []
    while delivered:
        size = dice.randint(1, 4)
        written.append(batch(f"b{len(written)}", delivered[:size]))
        delivered = delivered[size:]
        again = dice.sample(written, dice.randint(0, len(written)))  # their deletion was lost
        state = with_arrivals(state, WATCHING, [written[-1], *again])
    assert counts(state) == counts(plain)


@given(items=st.lists(objects, max_size=12, unique_by=lambda each: each.identity))
def test_counts_agree_with_counting_by_hand(items: list[ArrivedObject]) -> None:
    state = with_arrivals(fresh(WATCHING), WATCHING, [batch("one", items)])
    mine = [each for each in items if each.bucket == "data-1" and each.name != "cassava/"]
    cassava = [each for each in mine if each.name.startswith("cassava/")]
    pictured = [each for each in mine if each.name.endswith(".jpg")]
    for condition, found in zip(WATCHING.new_data, (cassava, pictured), strict=True):
        counted = counted_by(state, condition)
        assert (counted.count, counted.size_bytes) == (len(found), sum(each.size_bytes for each in found))
    either = {each.identity: each for each in (*cassava, *pictured)}
    whole = total_of(state.waiting)
    assert whole.count == len(either)
    assert {folder.dir_uri for folder in state.waiting} == {each.dir_uri for each in either.values()}
    newest_first = sorted(either.values(), key=lambda each: (each.created_at, each.uri, each.generation))[
        ::-1
    ]
    assert list(state.newest) == newest_first[:NEWEST_MAX]
    if either:
        assert whole.newest_at == newest_first[0].created_at
        assert whole.first_at == newest_first[-1].created_at


def test_a_state_that_nothing_changed_is_the_same_state() -> None:
    state = fresh(WATCHING)
    assert with_arrivals(state, WATCHING, [batch("x", [arrived("other/a.txt")])]) is state
    counted = with_arrivals(state, WATCHING, [batch("y", pictures(3))])
    assert with_arrivals(counted, WATCHING, [batch("y", pictures(3)), batch("z", pictures(2))]) is counted


def test_a_batch_is_counted_once_however_many_objects_came_since() -> None:
    first = batch("first", pictures(1))
    state = with_arrivals(fresh(WATCHING), WATCHING, [first])
    others = [arrived(f"cassava/other-{number}.jpg") for number in range(KEPT_IDENTITIES)]
    state = with_arrivals(state, WATCHING, [batch("others", others)])
    assert with_arrivals(state, WATCHING, [first]) is state


def test_a_new_generation_of_an_object_is_new_data() -> None:
    items = [arrived("cassava/a.jpg", generation=1), arrived("cassava/a.jpg", generation=2)]
    state = with_arrivals(fresh(WATCHING), WATCHING, [batch("x", items)])
    assert total_of(state.waiting).count == 2


@pytest.mark.parametrize(
    "name",
    [
        "cassava/",
        "cassava_$folder$",
        "cassava/.hidden/1.jpg",
        "cassava/.1.jpg.crc",
        "gcloud/tmp/parallel_composite_uploads/see_help/1.jpg",
        "cassava/gsutil/tmp/1.jpg",
        "cassava/1.jpg.gstmp",
        "cassava/1.jpg.part",
        "cassava/1.jpg._COPYING_",
        "cassava/_temporary/0/1.jpg",
        "cassava/_spark_metadata/0",
        "cassava/_SUCCESS",
        "cassava/_started_123",
        "cassava/_committed_123",
        "cassava/__MACOSX/1.jpg",
        "cassava/Thumbs.db",
    ],
)
def test_temporary_and_hidden_objects_and_markers_are_no_data(name: str) -> None:
    state, one = fresh(EVERYTHING), batch("x", [arrived(name)])
    assert with_arrivals(state, EVERYTHING, [one]) is state


def test_an_object_of_no_bytes_is_no_data() -> None:
    state = fresh(EVERYTHING)
    assert with_arrivals(state, EVERYTHING, [batch("x", [arrived("a.jpg", size_bytes=0)])]) is state


@pytest.mark.parametrize("name", ["_annotations.coco.json", "x/_SUCCESS.csv", "_delta_log/0.json", "a/../c"])
def test_names_that_only_look_like_markers_are_data(name: str) -> None:
    one = batch("x", [arrived(name)])
    assert total_of(with_arrivals(fresh(EVERYTHING), EVERYTHING, [one]).waiting).count == 1


def test_what_a_pattern_excludes_does_not_count() -> None:
    watched = {"objects": "gs://data-1/", "exclude": ["gs://data-1/logs/", "gs://data-1/**/*.txt"]}
    one = rule({"new_data": watched})
    names = ["a.jpg", "logs/b.jpg", "logs/c/d.jpg", "x/e.txt", "e.txt"]
    state = with_arrivals(fresh(one), one, [batch("x", [arrived(name) for name in names])])
    assert total_of(state.waiting).count == 2  # `e.txt` is in no folder


def test_batches_read_back_what_was_written() -> None:
    checked = arrived("c.jpg", crc32c="AAAAAA==")
    items = [arrived("a\nb \x00 ü.jpg", at=NOON + timedelta(microseconds=7)), checked, *pictures(3)]
    assert parse_batch("arrivals/x", encoded_batch(items)) == Batch(name="arrivals/x", arrivals=tuple(items))
    assert parse_batch("arrivals/x", b"").arrivals == ()


@pytest.mark.parametrize(
    "line", [b"{}", b"[1]", b"nonsense", b'["b","n","x",1,"2026-01-01T00:00:00Z"]', b"[1,2,3,4,5]"]
)
def test_a_damaged_batch_names_its_line(line: bytes) -> None:
    with pytest.raises(ValueError, match="arrivals/x, line 2"):
        parse_batch("arrivals/x", encoded_batch(pictures(1)) + line + b"\n")


def test_batches_sort_by_time_and_writers_never_meet() -> None:
    first, second = (batch_object(NOON + n * timedelta(microseconds=1), "f00d", n) for n in range(2))
    assert first < second
    assert first == "arrivals/20260304t120000000000-f00d-0"
    assert batch_object(NOON, "cafe", 0) != first


def finalized(**fields: Any) -> Envelope:
    return Envelope(
        id="e1", type="finalized", source="", subject="", time=NOON, received_at=NOON, data=fields or None
    )


def test_an_object_event_names_what_arrived() -> None:
    event = finalized(
        bucket="data-1",
        name="cassava/1.jpg",
        generation="7",
        size="10",
        timeCreated="2026-03-04T12:00:01Z",
        crc32c="yZRlqg==",
    )
    one = arrived("cassava/1.jpg", at=NOON + SECOND, generation=7, crc32c="yZRlqg==")
    assert parse_arrived_object(event) == one


@pytest.mark.parametrize("crc32c", [None, 7, "", "yZRlqg", "no checksum", ["yZRlqg=="]])
def test_a_checksum_that_is_none_is_left_out(crc32c: object) -> None:
    event = finalized(bucket="data-1", name="a", generation="7", size="10", crc32c=crc32c)
    assert parse_arrived_object(event).crc32c == ""


@pytest.mark.parametrize(
    "fields",
    [{}, {"bucket": "b"}, {"bucket": "b", "name": "n"}, {"bucket": "b", "name": "n", "generation": "x"}],
)
def test_an_object_event_without_its_object_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(EventMalformed, match="e1"):
        parse_arrived_object(finalized(**fields))


@functools.cache
def worst() -> RuleState:
    """The largest possible state, as far as its parts are known."""
    long = "ü" * 512
    uri = f"gs://data-1/{long}"
    when = [{"new_data": {"objects": f"gs://data-1/{n}{'x' * 1000}*"}} for n in range(10)]
    state = fresh(rule(*when))
    counted = with_arrivals(
        fresh(WATCHING),
        WATCHING,
        [batch(f"{n}", [arrived(f"cassava/{n}.jpg")]) for n in range(KEPT_IDENTITIES + 9)],
    )
    chars = FOLDERS_MAX_CHARS // FOLDERS_MAX
    waiting = tuple(
        replace(
            counted.waiting[0],
            dir_uri=f"gs://data-1/{number:03}{'ü' * (chars - 16)}/",
            takers=tuple(range(10)),
            count=10**15,
            size_bytes=10**18,
            others=True,
        )
        for number in range(FOLDERS_MAX)
    )
    newest = replace(counted.newest[0], name=long, generation=10**18, size_bytes=10**18, crc32c="yZRlqg==")
    values = {f"place.{n}": "ü" * 500 for n in range(6)} | {
        "data.newest_uri": uri,
        "data.newest_dir_uri": uri,
    }
    run_id = "r" * 63
    firing = Firing(
        number=10**9,
        run_id=run_id,
        condition=ConditionKind.NEW_IMAGE,
        at=NOON,
        generation=10**18,
        event_id="x" * 1000,
        values=values,
        replaces=run_id,
    )
    queued = DueFiring(
        condition=ConditionKind.ALERT, event_id="x" * 1000, at=NOON, values=values, image="x" * 80
    )
    pushed = {"image.uri": "x" * 1100, "image.digest": "x" * 71, "image.tag": "x" * 128}
    met = replace(queued, condition=ConditionKind.NEW_IMAGE, event_id="x" * 200, values=pushed)
    held = HeldBack(condition=ConditionKind.NEW_DATA, reason="ü" * 500, at=NOON)
    for number in range(KEPT_SIGNALS + 9):
        state = with_seen(state, f"signal {number}")
    return replace(
        state,
        number=10**9,
        firing=firing,
        queued=queued,
        current_run=run_id,
        fired_last_at=NOON,
        fired_at=tuple(NOON + n * SECOND for n in range(1000)),
        watched=("x" * 6_500,) * 10,  # of a rule of 64 KiB
        waiting=waiting,
        newest=(newest,) * NEWEST_MAX,
        chunks=(f"rule-data/{'r' * 63}/{'0' * 20}.ndjson",) * 100,
        watermark=NOON,
        batches=counted.batches,
        identities=counted.identities,
        image="x" * 80,
        met={f"{n:08}": met for n in range(KEPT_MET)},
        held=held,
        last=Fired(number=1, run_id=run_id, condition=ConditionKind.NEW_DATA, at=NOON),
    )


def test_the_largest_state_fits_its_schema_and_its_bound() -> None:
    state = worst()
    stored = json_bytes(encoded(state))
    assert_valid(json.loads(stored), "rule_state.v1")
    assert len(state.identities) == KEPT_IDENTITIES * 8
    assert len(state.batches) == KEPT_BATCHES * 8
    assert len(stored) <= MAX_STATE_BYTES
    assert decoded(RuleState, json.loads(stored)) == state


def test_a_fresh_state_fits_its_schema_and_reads_back() -> None:
    state = fresh(WATCHING)
    document = mapping_at(encoded(state))
    assert_valid(document, "rule_state.v1")
    assert decoded(RuleState, document) == state
    assert state_object(state.rule_id) == "rule-state/watch.json"
    with pytest.raises(ValueError, match="generation"):
        decoded(RuleState, {**document, "generation": "x"})


def test_the_last_hundred_signals_are_known() -> None:
    state = fresh(WATCHING)
    for number in range(KEPT_SIGNALS + 1):
        state = with_seen(state, f"s{number}")
    assert not has_seen(state, "s0")
    assert all(has_seen(state, f"s{number}") for number in range(1, KEPT_SIGNALS + 1))


def test_a_new_generation_keeps_what_it_still_watches_and_what_fired_today() -> None:
    counted = with_arrivals(fresh(WATCHING), WATCHING, [batch("x", pictures(3))])
    old = replace(counted, fired_at=(NOON,), fired_last_at=NOON, current_run="r-1", number=4)
    later = NOON + DAY
    one = rule({"new_data": {"objects": "gs://data-1/cassava/"}}, generation=2)
    kept = state_for(one, old, later)
    assert kept.watched == ("gs://data-1/cassava/**",)
    assert [(each.dir_uri, each.takers, each.count) for each in kept.waiting] == [
        ("gs://data-1/cassava/", (0,), 3)
    ]
    assert len(kept.newest) == 3
    assert (kept.fired_at, kept.current_run, kept.number) == ((NOON,), "r-1", 4)
    assert (kept.since, kept.scheduled_until) == (later, later)
    other = state_for(rule({"manual": {}}, generation=3), old, later)
    assert (other.watched, other.waiting, other.newest) == ((), (), ())
    assert state_for(WATCHING, old, later) is old


def test_a_condition_that_goes_takes_no_count_of_a_folder_that_another_watches_too() -> None:
    narrow, wide = ({"new_data": {"objects": f"gs://data-1/cassava/{name}"}} for name in ("a*", "**"))
    old, new = rule(narrow, wide), rule(wide, generation=2)
    state = with_arrivals(fresh(old), old, [batch("x", [arrived("cassava/a.jpg"), arrived("cassava/b.jpg")])])
    state = with_arrivals(state_for(new, state, NOON), new, [batch("y", [arrived("cassava/c.jpg")])])
    assert counted_by(state, new.new_data[0]).count == 3


def test_a_launched_firing_is_the_last_one_and_the_rule_is_free() -> None:
    state = worst()
    firing = present(state.firing)
    free = with_launch(state)
    assert (free.firing, free.current_run) == (None, firing.run_id)
    assert free.last == Fired(
        number=firing.number, run_id=firing.run_id, condition=firing.condition, at=firing.at
    )
    assert with_launch(free) is free


def test_a_firing_that_is_given_up_says_why() -> None:
    state = worst()
    free = given_up(state, "the template is gone", NOON)
    assert free.firing is None
    assert present(free.held).reason == "the template is gone"
    assert free.last == state.last
    assert given_up(free, "again", NOON) is free
