"""Programs that the steps of cloudbuild.yaml find on the PATH in place of those in their images.

The image keeps its name in the cloud throughout; only where it is pushed to and pulled from is a local registry.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.project import Project, eventually
from trainmaster.deploy.local_image import secrets

from .cloud_build import Worker, loaded, substitutions

HOST = "us-central1-docker.pkg.dev"

# buildah takes docker's flags. Its images show the digest of their uncompressed form, which no registry has, so `inspect`
# prints the digest that was pushed.
_DOCKER = """#!/bin/sh
export CONTAINERS_REGISTRIES_CONF="$HOME/registries.conf"
verb=$1; shift
case $verb in
  build) exec buildah build --isolation chroot --layers {secrets} "$@" ;;
  pull) exec buildah pull "$@" ;;
  push)
    buildah push --quiet --tls-verify=false --digestfile "$HOME/digest" \\
      "$1" "docker://{registry}/${{1#*/}}" || exit
    echo "${{1%:*}}@$(cat "$HOME/digest")" >> "$HOME/pushed" ;;
  inspect) podman image inspect "$@" > /dev/null && tail -n 1 "$HOME/pushed" ;;
  *) echo "docker $verb: not known here" >&2; exit 64 ;;
esac
"""
# containers-registries.conf(5): names under `prefix` are pulled from `location`.
_REGISTRIES = """[[registry]]
prefix = "{host}"
location = "{registry}"
insecure = true
"""
_SOURCES = (
    "PIP_",
    "UV_",
    "SSL_CERT_",
    "REQUESTS_CA_",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
)
_FILES = {"pip": "PIP_CONFIG_FILE", "uv": "UV_CONFIG_FILE"}
_GCLOUD = """#!/bin/sh
. {variables}
{exports}
# The stand-in for the Functions API is not behind the stack's proxy.
[ "$1" != functions ] || unset CLOUDSDK_PROXY_TYPE CLOUDSDK_PROXY_ADDRESS CLOUDSDK_PROXY_PORT CLOUDSDK_PROXY_USERNAME CLOUDSDK_PROXY_PASSWORD
exec {gcloud} "$@"
"""


@contextmanager
def local_worker(folder: Path, project: Project, *, base: str) -> Iterator[Worker]:
    """A worker with an empty workspace and a `docker`, for the project of a running stack that has a registry.

    The images that its steps make are removed at the end.
    """
    workspace, output, shims = (folder / name for name in ("workspace", "output", "shims"))
    for each in (workspace, output, shims):
        each.mkdir(parents=True)
    registry = project.env["TRAINMASTER_REGISTRY"]
    add_docker(shims, output, registry=registry)
    values = substitutions(loaded(), PROJECT_ID=project.id, _BASE_IMAGE=base)
    try:
        yield Worker(
            workspace=workspace,
            output=output,
            shims=shims,
            values=values,
            surroundings=package_sources(os.environ),
        )
    finally:
        for host in (HOST, registry):
            _remove_images(f"{host}/{project.id}/trainmaster/trainer")


def _remove_images(repository: str) -> None:
    images: list[str] = []

    def listed() -> bool:
        """It fails where another test removes an image meanwhile."""
        command = ["podman", "images", "--quiet", "--filter", f"reference={repository}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        images[:] = done.stdout.split()
        return done.returncode == 0

    eventually(listed, "the images are listed")
    for image in dict.fromkeys(images):
        subprocess.run(["podman", "rmi", "--force", image], check=False, capture_output=True)


def add_docker(shims: Path, home: Path, *, registry: str) -> None:
    """A `docker` whose images of HOST are in the registry at `host:port`; `home` is the steps' HOME."""
    options = " ".join(f"--secret id={name},src={path}" for name, path in secrets(os.environ))
    (home / "registries.conf").write_text(_REGISTRIES.format(host=HOST, registry=registry))
    _add(shims / "docker", _DOCKER.format(registry=registry, secrets=options))


def add_gcloud(shims: Path, *, variables: Path, more: Mapping[str, str]) -> None:
    """The real gcloud with the exported variables of a file, as a stack keeps them, and with `more`."""
    exports = "\n".join(f"export {name}={value}" for name, value in more.items())
    text = _GCLOUD.format(variables=variables, exports=exports, gcloud=shutil.which("gcloud"))
    _add(shims / "gcloud", text)


def add_python(shims: Path) -> None:
    """A Python without packages, as in the image python:3.11. The steps' `make` is that of this machine."""
    empty = shims.parent / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    for name in ("python", "python3"):
        _add(shims / name, f'#!/bin/sh\nexec {empty / "bin" / "python"} "$@"\n')


def package_sources(environment: Mapping[str, str]) -> dict[str, str]:
    """This machine's settings for pip and uv, whatever HOME a step has."""
    kept = {name: value for name, value in environment.items() if name.startswith(_SOURCES)}
    files = {name: str(path) for name, path in secrets(environment)}
    return kept | {variable: files[name] for name, variable in _FILES.items() if name in files}


def _add(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
