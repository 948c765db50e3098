"""The images that builds start from, each pinned to the digest that its registry states.

Sources: https://distribution.github.io/distribution/spec/api/#pulling-an-image and
https://distribution.github.io/distribution/spec/auth/token/, read 2026-11.

A tag may change between the tests and a release; a digest does not. Reading a digest takes two GET requests,
so no further program is needed.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import parse_http_list, parse_keqv_list

import requests

IMAGES: Mapping[str, tuple[str, ...]] = {
    "python:3.11-slim": ("cloudbuild.yaml", "Dockerfile"),
    "python:3.11": ("cloudbuild.yaml", "tools/cloudbuild-release.yaml"),
    "gcr.io/cloud-builders/docker:latest": ("cloudbuild.yaml",),
    "gcr.io/google.com/cloudsdktool/google-cloud-cli:stable": ("cloudbuild.yaml",),
}
"""Name and tag of each image, with the files that name it."""

_DOCKER_HUB = "registry-1.docker.io"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Lists of platforms first, whose digest pins the image of each of them."""
_MAX_BYTES = 4 * 1024 * 1024  # what registries take as a manifest at most
_TIMEOUT_S = 30


class CannotPinError(Exception):
    """No digest was found for an image; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class RegistryImage:
    """Where an image is: `repository` and `tag` on the registry `host`, perhaps with a port."""

    host: str
    repository: str
    tag: str

    @property
    def registry(self) -> str:
        """The registry's address. One on this machine is spoken to without TLS, as Docker does."""
        is_here = self.host.partition(":")[0] in {"localhost", "127.0.0.1"}
        return f"{'http' if is_here else 'https'}://{self.host}"


def image_from(name: str) -> RegistryImage:
    """The place of `name:tag`, by Docker's rules: a name without a host is on Docker Hub."""
    path, _, tag = name.rpartition(":")
    host, slash, repository = path.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return RegistryImage(host=host, repository=repository, tag=tag)
    return RegistryImage(host=_DOCKER_HUB, repository=path if slash else f"library/{path}", tag=tag)


def pin_images(root: Path, images: Mapping[str, tuple[str, ...]] = IMAGES) -> None:
    """Write the present digest of each image into the files below `root` that name it.

    Nothing is written unless all are known.

    Raises:
        CannotPinError: a registry gave no digest, or a file does not name an image.
        OSError: a file cannot be read or written.
    """
    texts = {file: (root / file).read_text() for files in images.values() for file in files}
    for name, files in images.items():
        digest = digest_of(name)
        for file in files:
            texts[file] = with_digest(texts[file], name, digest, file=file)
    for file, text in texts.items():
        (root / file).write_text(text)


def with_digest(text: str, name: str, digest: str, *, file: str) -> str:
    """The text in which the image has this digest in place of another one or of none.

    Raises:
        CannotPinError: the text does not name the image.
    """
    reference = re.compile(rf"(?<![\w./:-]){re.escape(name)}(?:@sha256:[0-9a-f]+)?(?![\w.@-])")
    result, number = reference.subn(f"{name}@{digest}", text)
    if not number:
        raise CannotPinError(f"{file} does not name {name!r}. Name it there, or change IMAGES in {__name__}.")
    return result


def digest_of(name: str) -> str:
    """`sha256:…` of what the registry has now under this name and tag: of all platforms, where it has several.

    Raises:
        CannotPinError: the registry does not answer, has no such image, or contradicts itself.
    """
    image = image_from(name)
    try:
        manifest, stated = _manifest_of(image)
    except (requests.RequestException, ValueError) as error:
        raise CannotPinError(
            f"No digest of {name!r} from {image.registry}: {error}. Its digest stays as it was. Repeat `make lock` "
            f"where the registry can be reached."
        ) from error
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    if stated not in {None, digest}:
        raise CannotPinError(
            f"{image.registry} says that {name!r} is {stated}, but it sent {digest}. Try again."
        )
    return digest


def _manifest_of(image: RegistryImage) -> tuple[bytes, str | None]:
    """The image's manifest as it was sent, and its digest as the registry states it."""
    url = f"{image.registry}/v2/{image.repository}/manifests/{image.tag}"
    headers = {"Accept": ", ".join(_MANIFESTS)}
    answer = _fetch_answer(url, headers=headers)
    if answer.status_code == requests.codes.unauthorized:
        answer = _fetch_answer(url, headers=headers | {"Authorization": f"Bearer {_token_of(image, answer)}"})
    answer.raise_for_status()
    return _content_of(answer), answer.headers.get("Docker-Content-Digest")


def _token_of(image: RegistryImage, refusal: requests.Response) -> str:
    """The token that everyone may have who only pulls."""
    kind, _, challenge = refusal.headers.get("WWW-Authenticate", "").partition(" ")
    words = parse_keqv_list(parse_http_list(challenge))
    if kind.lower() != "bearer" or not words.get("realm"):
        raise ValueError("it asks for a password, and offers no token for everyone")
    named = {"scope": f"repository:{image.repository}:pull", "service": words.get("service", "")}
    answer = _fetch_answer(words["realm"], params={name: text for name, text in named.items() if text})
    answer.raise_for_status()
    given = json.loads(_content_of(answer))
    token = given.get("token") or given.get("access_token") if isinstance(given, dict) else None
    if not isinstance(token, str):
        raise ValueError(f"{words['realm']} gave no token")  # noqa: TRY004  an answer, not an argument
    return token


def _fetch_answer(
    url: str, *, headers: Mapping[str, str] | None = None, params: Mapping[str, str] | None = None
) -> requests.Response:
    return requests.get(url, headers=headers, params=params, timeout=_TIMEOUT_S, stream=True)


def _content_of(answer: requests.Response) -> bytes:
    content = b""
    for part in answer.iter_content(64 * 1024):
        content += part
        if len(content) > _MAX_BYTES:
            raise ValueError(f"its answer has more than {_MAX_BYTES} bytes")
    return content
