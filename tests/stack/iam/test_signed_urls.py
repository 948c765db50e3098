"""Signed URLs made by Google's client with `signBlob`, and the principal that Cloud Storage sees in their requests."""

import base64
import datetime as dt
import re

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials, Signing
from google.cloud import storage

from .conftest import LEDGER, MINE, MODELS, STRANGER, TRAINER, Served, denied, email


def sign_blob(served: Served, account: str, message: bytes, caller: str = "") -> httpx.Response:
    path = f"/v1/projects/-/serviceAccounts/{email(account)}:signBlob"
    return served.call("POST", "iam", path, caller, json={"payload": base64.b64encode(message).decode()})


class Impersonated(AnonymousCredentials, Signing):
    """Signs with IAM's `signBlob`, as google-auth's impersonated credentials do."""

    def __init__(self, served: Served, account: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth annotates no constructor
        self._served, self._account = served, account

    @property
    def signer_email(self) -> str:
        return email(self._account)

    @property
    def signer(self) -> None:
        return None

    def sign_bytes(self, message: bytes) -> bytes:
        return base64.b64decode(sign_blob(self._served, self._account, message).json()["signedBlob"])


def signed(served: Served, bucket: str, name: str, account: str = TRAINER, **options: object) -> str:
    credentials = Impersonated(served, account)
    with storage.Client(project="p", credentials=AnonymousCredentials()) as client:
        url = (
            client.bucket(bucket)
            .blob(name)
            .generate_signed_url(
                **{"version": "v4", "expiration": 60, "credentials": credentials, **options},
                api_access_endpoint=served.urls["storage"],
            )
        )
    return str(url)


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, "".join(re.findall("<Code>(.*)</Code>", answer.text))


def test_a_signed_url_gives_its_object(served: Served) -> None:
    served.upload(MINE, "d/é ~x+")
    url = signed(served, MINE, "d/é ~x+", response_disposition="attachment; filename=a b", generation=None)
    answer = served.http.get(url)
    assert (answer.content, answer.headers["content-disposition"]) == (b"x", "attachment; filename=a b")


@pytest.mark.parametrize(
    ("before", "after"), [("Expires=60", "Expires=61"), ("Signature=", "Signature=00"), ("/y", "/z")]
)
def test_a_changed_url_is_refused(served: Served, before: str, after: str) -> None:
    url = signed(served, MINE, "y").replace(before, after)
    assert code_of(served.http.get(url)) == (403, "SignatureDoesNotMatch")


def test_a_url_of_another_method_header_or_unknown_key_is_refused(served: Served) -> None:
    url = signed(served, MINE, "typed", method="PUT", content_type="a/b")
    for verb, content_type in (("GET", "a/b"), ("PUT", "a/c")):
        answer = served.http.request(verb, url, headers={"content-type": content_type})
        assert code_of(answer) == (403, "SignatureDoesNotMatch")
    assert served.http.put(url, content=b"x", headers={"content-type": "a/b"}).status_code == 200
    unknown = signed(served, MINE, "typed").replace(TRAINER, "tm-unknown")
    assert code_of(served.http.get(unknown)) == (403, "SignatureDoesNotMatch")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        # 400 as the service: https://github.com/floci-io/floci-gcp/pull/33
        ("X-Goog-Date=20200101T000000Z&X-Goog-Expires=60&X-Goog-Signature=00", "ExpiredToken"),
        ("x-goog-date=yesterday&x-goog-expires=60&x-goog-signature=00", "MalformedSecurityHeader"),
        ("X-Goog-Date=20200101T000000Z&X-Goog-Expires=604801&X-Goog-Signature=0", "MalformedSecurityHeader"),
        ("GoogleAccessId=a&Expires=1&Signature=AAAA", "ExpiredToken"),
        ("GoogleAccessId=a&Expires=soon&Signature=AAAA", "MalformedSecurityHeader"),
        ("X-Amz-Signature=00", "NotImplemented"),
        ("X-GOOG-SIGNATURE=00", "MalformedSecurityHeader"),
    ],
)
def test_an_expired_or_malformed_url_is_refused(served: Served, query: str, code: str) -> None:
    own = f"X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential={TRAINER}%2F20200101%2Fauto%2Fstorage%2Fgoog4_request"
    answer = served.http.get(f"{served.urls['storage']}/{MINE}/a?{own}&{query}")
    assert code_of(answer) == (400, code)


def test_a_url_may_do_what_its_signer_may(served: Served) -> None:
    assert code_of(served.http.get(signed(served, LEDGER, "runs/a.json"))) == (403, "AccessDenied")
    assert served.http.get(signed(served, MODELS, "team-a/model")).status_code == 200


def test_a_signed_url_begins_a_session_that_needs_no_signature(served: Served) -> None:
    url = signed(served, MINE, "session", method="RESUMABLE")
    begun = served.http.post(url, headers={"x-goog-resumable": "start"})
    assert begun.status_code == 201
    assert served.http.put(begun.headers["location"], content=b"x").status_code == 200


def test_signing_for_an_account_needs_the_permission(served: Served) -> None:
    assert "iam.serviceAccounts.signBlob" in denied(sign_blob(served, TRAINER, b"x", STRANGER))
    assert sign_blob(served, "tm-unknown", b"x").status_code == 403
    assert sign_blob(served, TRAINER, b"").status_code == 400


@pytest.mark.parametrize("more", [{}, {"response_disposition": "inline"}])
def test_urls_of_version_2_are_held_to_their_object_method_and_time(
    served: Served, more: dict[str, str]
) -> None:
    put = signed(served, MINE, "two", version="v2", expiration=dt.timedelta(minutes=1), method="PUT")
    assert served.http.put(put, content=b"x").status_code == 200
    url = signed(served, MINE, "two", version="v2", expiration=dt.timedelta(minutes=1), **more)
    assert served.http.get(url).content == b"x"
    assert code_of(served.http.put(url)) == (403, "SignatureDoesNotMatch")
    assert code_of(served.http.get(url.replace("/two", "/y"))) == (403, "SignatureDoesNotMatch")
    late = re.sub(r"Expires=\d+", "Expires=1", url)
    assert code_of(served.http.get(late)) == (400, "ExpiredToken")
