"""Builds the trainer image on this machine, by default on a small base image made from Debian packages.

Neither a container engine nor namespaces are needed, so it works inside the containers of continuous
integration.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.resources import ROOT
from trainmaster.version import VERSION

BASE = "localhost/trainmaster/base:bookworm"
TRAINER = "localhost/trainmaster/trainer:latest"
VARIANTS = ("cpu", "cuda")
"""The Dockerfile's variants; each has its own lock, trainer/requirements-VARIANT.txt."""

DEBIAN = "http://deb.debian.org/debian"
SUITE = "bookworm"  # with Python 3.11: https://packages.debian.org/bookworm/python3
PACKAGES = "python3,python3-pip,ca-certificates"
_NOT_NEEDED = (
    "var/cache/apt/archives",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)

# Where pip and uv look for their settings, from the "Configuration" pages of their documentation, read 2026-11.
_PIP_FILES = ("~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf")
_UV_FILES = ("~/.config/uv/uv.toml", "/etc/uv/uv.toml")
_AUTHORITIES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class CannotBuildError(Exception):
    """This machine lacks something that the build needs; the message says what, and how to get it."""


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A program that builds images without a daemon: `buildah bud`, or the equivalent `podman build`."""

    program: str

    def build(self, *, context: Path, tag: str, options: tuple[str, ...] = ()) -> None:
        """Build `context` and tag the image; unchanged layers come from the last build.

        Raises:
            subprocess.CalledProcessError: a step of the Dockerfile failed; the output says which.
        """
        verb = "bud" if Path(self.program).name == "buildah" else "build"
        # chroot: RUN steps then need no namespaces, which many containers and CI machines do not allow.
        isolated = ("--isolation", "chroot", "--layers")
        command = [self.program, verb, *isolated, "--tag", tag, *options, str(context)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def has(self, image: str) -> bool:
        """Whether the local store has the image."""
        return subprocess.run([self.program, "inspect", "--type", "image", image], check=False, capture_output=True).returncode == 0  # fmt: skip


def builder() -> Builder:
    """The builder of this machine.

    Raises:
        CannotBuildError: none is on the PATH.
    """
    for name in ("buildah", "podman"):
        if (program := shutil.which(name)) is not None:
            return Builder(program=program)
    raise CannotBuildError("Neither buildah nor podman is on the PATH. On Debian: apt-get install buildah")


def make_base(build: Builder, *, mirror: str = DEBIAN) -> None:
    """Make the image BASE of Debian's minimal system with Python, pip and CA certificates. Takes a minute or two.

    Raises:
        CannotBuildError: debootstrap is missing, or the user is not root.
        subprocess.CalledProcessError: a package could not be downloaded or unpacked; the output says which.
    """
    debootstrap = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if debootstrap is None or os.geteuid() != 0:
        raise CannotBuildError(
            "A base image is made by debootstrap, as root: on Debian, apt-get install debootstrap. "
            "Else name a base with Python 3.11 and pip: --base python:3.11-slim"
        )
    with tempfile.TemporaryDirectory(prefix="tm-base-") as scratch:
        root, context = Path(scratch, "root"), Path(scratch, "context")
        context.mkdir()
        subprocess.run(
            [debootstrap, "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), mirror],
            check=True,
            stdin=subprocess.DEVNULL,
        )
        for name in _NOT_NEEDED:
            shutil.rmtree(root / name, ignore_errors=True)
        # An archive keeps owners and modes; copying a directory would not.
        subprocess.run(["tar", "-C", root, "--numeric-owner", "-cf", context / "root.tar", "."], check=True)
        shutil.rmtree(root)
        (context / "Dockerfile").write_text(
            "FROM scratch\nADD root.tar /\n"
            'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nCMD ["/bin/sh"]\n'
        )
        build.build(context=context, tag=BASE)


def build_trainer(
    build: Builder,
    *,
    revision: str,
    base: str = BASE,
    variant: str = "cpu",
    tag: str = TRAINER,
    tree: Path = ROOT,
) -> None:
    """Build the Dockerfile in `tree` on `base`, labelled with `revision`. `variant`: one of VARIANTS.

    Raises:
        subprocess.CalledProcessError: a step failed; the output says which.
    """
    options = (
        *("--build-arg", f"BASE_IMAGE={base}", "--build-arg", f"VARIANT={variant}"),
        *("--label", f"org.opencontainers.image.revision={revision}"),
        *(word for name, path in secrets(os.environ) for word in ("--secret", f"id={name},src={path}")),
    )
    build.build(context=tree, tag=tag, options=options)


def secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """This machine's settings for pip, uv and certificate authorities, as the Dockerfile's secrets."""
    authorities = [environment[name] for name in _AUTHORITIES if environment.get(name)]
    for name, named, usual in (
        ("pip", environment.get("PIP_CONFIG_FILE"), _PIP_FILES),
        ("uv", environment.get("UV_CONFIG_FILE"), _UV_FILES),
        ("ca", authorities[0] if authorities else None, ()),
    ):
        candidates = [Path(path).expanduser() for path in ([named] if named else usual)]
        if (path := next((path for path in candidates if path.is_file()), None)) is not None:
            yield name, path


def revision_of(tree: Path) -> str:
    """The commit checked out in `tree`, with `-dirty` if it has changes; outside of git, the release.

    It is `unknown` where git is not installed, or refuses to read the tree because it belongs to another user.
    """
    if not (tree / ".git").exists():  # installed, perhaps inside another repository
        return f"v{VERSION}"
    if shutil.which("git") is None:
        return "unknown"
    command = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def build_image(*, base: str | None, variant: str, tag: str, mirror: str) -> None:
    """Build this version's trainer image on `base`, or on the default base, which is made if it is missing.

    Raises:
        CannotBuildError, subprocess.CalledProcessError: as `builder`, `make_base` and `build_trainer`.
    """
    build = builder()
    if base is None and not build.has(BASE):
        make_base(build, mirror=mirror)
    build_trainer(build, base=base or BASE, variant=variant, tag=tag, revision=revision_of(ROOT))
