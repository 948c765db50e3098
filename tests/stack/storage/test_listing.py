import bisect
from typing import Any

import httpx
import pytest
from google.cloud import storage
from hypothesis import given
from hypothesis import strategies as st

from trainstack.storage.objects.listing import (
    STEPS_PER_PAGE,
    ListQuery,
    glob_pattern,
    list_page,
)
from trainstack.storage.objects.records import Fingerprint, ObjectRecord

NAMES = ["a", "a/", "a/b", "a/c/d", "b/x", "b/y", "z", "ä", "\uffee", "\U0001f600"]
"""In the order of their UTF-8 bytes."""


@pytest.fixture(scope="module")
def filled(client: storage.Client) -> storage.Bucket:
    bucket = client.create_bucket("filled")
    for name in reversed(NAMES):
        bucket.blob(name).upload_from_string("x")
    return bucket


@pytest.mark.parametrize(
    ("query", "names", "prefixes"),
    [
        ({"page_size": 1}, NAMES, set()),
        ({"delimiter": "/"}, ["a", "z", "ä", "\uffee", "\U0001f600"], {"a/", "b/"}),
        ({"prefix": "a/", "delimiter": "/"}, ["a/", "a/b"], {"a/c/"}),
        ({"prefix": "a", "delimiter": "/", "include_trailing_delimiter": True}, ["a", "a/"], {"a/"}),
        ({"start_offset": "a/b", "end_offset": "b/y"}, ["a/b", "a/c/d", "b/x"], set()),
        ({"match_glob": "a/*"}, ["a/", "a/b"], set()),
        ({"match_glob": "{a,b}/**[dy]"}, ["a/c/d", "b/y"], set()),
    ],
)
def test_a_listing_has_the_names_and_prefixes_of_its_query(
    filled: storage.Bucket, query: dict[str, Any], names: list[str], prefixes: set[str]
) -> None:
    listing = filled.list_blobs(**query)
    assert [blob.name for blob in listing] == names
    assert listing.prefixes == prefixes


@pytest.mark.parametrize(
    ("glob", "name", "matches"),
    [
        ("*.txt", "a.txt", True),
        ("*.txt", "d/a.txt", False),
        ("**.txt", "d/a.txt", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("{one,two}.*", "two.x", True),
        ("a.b", "axb", False),
        ("{a,{b,c}d}", "cd", True),
        ("[[^\\]]", "^]", True),
        ("[!^]", "^", False),
        ("**", "a/\nb", True),
        ("?", "é", True),
        ("[", "[", True),
        ("**/a", "a", True),
        ("**/a", "b/c/a", True),
        ("**/a", "ba", False),
        ("b/**/a", "b/a", True),
        ("b**/a", "b/a", True),
        ("b**/a", "ba", False),
    ],
)
def test_globs_match_as_documented(glob: str, name: str, matches: bool) -> None:
    assert glob_pattern(glob).matches(name) is matches


def test_a_glob_that_could_match_in_many_ways_is_answered_at_once(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    """Python's regular expressions would try for years, and no other request would be answered meanwhile."""
    bucket.blob("a" * 900).upload_from_string("x")
    path = f"/storage/v1/b/{bucket.name}/o"
    for glob, found in (("**a" * 12 + "b", 0), ("**a" * 12, 1), ("{*a*,**a}" * 12 + "b", 0)):
        answer = http.get(path, params={"matchGlob": glob}).json()
        assert len(answer.get("items", [])) == found


@pytest.mark.parametrize("glob", ["a" * 2001, "?" * 2000, "{" * 1001 + "}" * 1000])
def test_a_glob_that_is_too_large_is_refused(http: httpx.Client, bucket: storage.Bucket, glob: str) -> None:
    answer = http.get(f"/storage/v1/b/{bucket.name}/o", params={"matchGlob": glob})
    assert answer.status_code == 400
    assert "Invalid matchGlob" in answer.json()["error"]["message"]


@pytest.mark.parametrize("glob", ["*x*5", "{a,b}/**" + "?" * 100, "a/*"])
def test_pages_that_end_early_for_a_glob_lead_to_the_same_items(glob: str) -> None:
    names = sorted(
        f"{folder}/{number:05}{'x' * (number % 400)}" for folder in "abc" for number in range(1500)
    )
    scanned: list[int] = []

    def scan(start: str, end: str, limit: int) -> list[ObjectRecord]:
        first = bisect.bisect_left(names, start)
        last = bisect.bisect_left(names, end) if end else len(names)
        found = names[first : min(last, first + limit)]
        scanned[-1] += len(found)
        return [_stored(name) for name in found]

    found, resume, pages = list[str](), "", 0
    while resume or not pages:
        scanned.append(0)
        page = list_page(scan, ListQuery(glob=glob, resume=resume))
        found += [stored.name for stored in page.items]
        resume, pages = page.resume, pages + 1
    pattern = glob_pattern(glob)
    assert found == [name for name in names if pattern.matches(name)]
    assert max(scanned) <= STEPS_PER_PAGE // 3000 + 2000
    assert sum(scanned) <= len(names) + 1000 * pages  # begins where the last page ended


@pytest.mark.parametrize("query", ["pageToken=%21", "maxResults=0", "maxResults=x", "matchGlob=%7B"])
def test_a_bad_listing_is_refused(http: httpx.Client, bucket: storage.Bucket, query: str) -> None:
    assert http.get(f"/storage/v1/b/{bucket.name}/o?{query}").status_code == 400


_name = st.text(alphabet="ab/", min_size=1, max_size=6)


@given(names=st.sets(_name, max_size=30), prefix=st.text(alphabet="ab/", max_size=2), size=st.integers(1, 5))
def test_pages_with_a_delimiter_give_what_one_page_would(names: set[str], prefix: str, size: int) -> None:
    ordered = sorted(names)

    def scan(start: str, end: str, limit: int) -> list[ObjectRecord]:
        return [_stored(name) for name in ordered if name >= start and (not end or name < end)][:limit]

    wanted_items = [name for name in ordered if name.startswith(prefix) and "/" not in name[len(prefix) :]]
    wanted_prefixes = {
        name[: name.index("/", len(prefix)) + 1]
        for name in ordered
        if name.startswith(prefix) and "/" in name[len(prefix) :]
    }
    items: list[str] = []
    prefixes: list[str] = []
    resume = ""
    while True:
        page = list_page(scan, ListQuery(prefix=prefix, delimiter="/", max_results=size, resume=resume))
        assert len(page.items) + len(page.prefixes) <= size
        items += [stored.name for stored in page.items]
        prefixes += page.prefixes
        resume = page.resume
        if not resume:
            break
    assert items == wanted_items
    assert prefixes == sorted(wanted_prefixes)


def _stored(name: str) -> ObjectRecord:
    fingerprint = Fingerprint(size=0, mtime_ns=0, inode=0)
    return ObjectRecord(
        bucket="b", name=name, generation=1, fingerprint=fingerprint, crc32c="", created_us=0, updated_us=0
    )
