"""A small checkout with the real set-up, and a package index in a folder."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("Makefile", "trainmaster/__init__.py", "trainmaster/resources.py", "tools/__init__.py")


@dataclass(frozen=True, kw_only=True)
class Index:
    """Wheels in a folder, and the lock that names them."""

    folder: Path
    locked: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        version: str,
        *,
        requires: str = "",
        tag: str = "py3-none-any",
        files: int = 1,
        lock: bool = True,
    ) -> Path:
        """Add a wheel with a module of its name that knows its version, and `files` modules in all."""
        wheel = self.folder / f"{name}-{version}-{tag}.whl"
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nProvides-Extra: more\n"
        content = {
            f"{name}/__init__.py": f"VERSION = {version!r}\n",
            **{f"{name}/part_{number}.py": "" for number in range(1, files)},
            f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        content[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*content, f"{info}/RECORD"])
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in content.items():
                archive.writestr(path, text)
        if lock:
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            self.locked.append(f"{name}=={version} \\\n    --hash=sha256:{digest}\n")
        return wheel


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A folder in which `make setup` works as in a checkout, with its own lock."""

    root: Path
    index: Index
    path: str = "/usr/bin:/bin"

    @property
    def stamp(self) -> Path:
        return self.root / ".venv" / ".installed-from-lock"

    def make_setup(
        self, *, python: str = sys.executable, under: Sequence[str] = (), **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run make with the index of the folder unless `variables` say otherwise."""
        with self.start_setup(python=python, under=under, **variables) as started:
            try:
                printed = started.communicate(timeout=120)
            finally:
                started.kill()
        return subprocess.CompletedProcess(started.args, started.returncode, *printed)

    def start_setup(
        self, *, python: str = sys.executable, under: Sequence[str] = (), **variables: str
    ) -> "subprocess.Popen[str]":
        """Start make in its own process group, by the command `under` if one is given: see `make_setup`."""
        (self.root / "requirements.lock").write_text("".join(self.index.locked))
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index.folder)}
        return subprocess.Popen(
            [*under, "make", "setup", f"PYTHON={python}"],
            cwd=self.root,
            env={
                "PATH": self.path,
                "HOME": str(self.root),
                "PIP_CONFIG_FILE": os.devnull,
                **(variables or offline),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def refused(self, *, python: str = sys.executable, under: Sequence[str] = (), **variables: str) -> str:
        """The sentences with which set-up fails, less make's own line and the log's place."""
        done = self.make_setup(python=python, under=under, **variables)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stderr
        assert not self.stamp.exists()
        lines = done.stderr.splitlines()
        return "\n".join(line for line in lines if not line.startswith(("make: ", "pip's output ")))

    def version_of(self, name: str) -> str:
        code = f"import {name}; print({name}.VERSION)"
        python = self.root / ".venv" / "bin" / "python"
        return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def pip(self, *words: str) -> str:
        """What the environment's pip prints, with this process's configuration of the package index."""
        command = [str(self.root / ".venv" / "bin" / "python"), "-m", "pip", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_checkout(folder: Path, environment: Path | None = None) -> Checkout:
    """A checkout below `folder` whose lock names three packages; `environment` is a .venv to start from."""
    root, wheels = folder / "checkout", folder / "wheels"
    wheels.mkdir()
    for part in PARTS:
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, root / part)
    shutil.copytree(ROOT / "tools" / "set_up", root / "tools" / "set_up")
    if environment:
        shutil.copytree(environment, root / ".venv", symlinks=True)
    index = Index(folder=wheels)
    index.add("alpha", "1", requires="beta[more]>=1")
    index.add("beta", "1")
    index.add("setuptools", "99")
    return Checkout(root=root, index=index)
