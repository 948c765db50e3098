"""The archive of a script's folder: the same bytes for the same files, named after their hash."""

import gzip
import hashlib
import io
import os
import shlex
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from trainmaster.client.errors import ClientRefused
from trainmaster.client.files.downloaded import LIST, read_downloaded
from trainmaster.client.files.secrets import find_secret
from trainmaster.client.nearest import nearest_names
from trainmaster.client.submission.gitignore.ignored import IgnoredPaths, ignored_above
from trainmaster.client.terminal import size_text
from trainstack.find import is_state

FILES_MAX = 5000
BYTES_MAX = 32 * 1024 * 1024
"""Before compression."""
SEEN_MAX = 100_000
"""Files and folders, packed or not."""
LARGEST_SHOWN = 5
STRAYS_SHOWN = 5
_USUAL = "train.py"
"""What a folder's script is most likely called."""
_CACHES = frozenset({"__pycache__"})
_CACHED = (".pyc", ".pyo")
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class Why(StrEnum):
    """Why a file or folder is not packed, in words that follow `Not packed, because`."""

    LINK = "links to folders are not followed"
    BROKEN = "it is a link to something that does not exist"
    SPECIAL = "it is neither a file nor a folder, but for example a named pipe"
    STATE = "a local stack runs or has run there"
    DOWNLOADED = f"trainmaster download put it there (to pack it, delete {LIST} beside it)"
    CONFIDENTIAL = (
        "it seems to hold a secret (a job has its own account and needs no key; the program can read others from "
        "Secret Manager; to pack it all the same: --include NAME)"
    )


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An archive, .tar.gz, of a script's folder.

    Attributes:
        file: the script's path in the archive, with '/'.
        script: the script on this machine.
        files: the paths of all files in it.
        left_out: what is not in it for a reason that users cannot see in a .gitignore, with '/' after folders, and
            behind a file with a secret its kind.
        notes: which folder it is and which packages are installed, in sentences for people.
    """

    content: bytes
    file: str
    script: Path
    files: tuple[str, ...]
    left_out: Mapping[Why, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that was packed, on this machine."""
        return self.script.parents[self.file.count("/")]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass
class _Found:
    """The files below a folder, by their path in it, and what they take."""

    folder: Path
    include: frozenset[str] = frozenset()
    files: dict[str, Path] = field(default_factory=dict)
    left_out: dict[Why, set[str]] = field(default_factory=lambda: defaultdict(set))
    sizes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    """Packed or not, files and folders."""
    links: dict[str, Path] = field(default_factory=dict)
    """Links to files, with what they lead to."""

    def add(self, path: Path, size_bytes: int) -> None:
        name = path.relative_to(self.folder).as_posix()
        self.files[name] = path
        top, slash, _ = name.partition("/")
        self.sizes[top + slash] += size_bytes
        self.counts[self.top_of(path.parent)] += 1

    def top_of(self, folder: Path) -> str:
        """The entry of the whole folder that this one is, or is in, with '/'; `./` for the whole folder."""
        return f"{next(iter(folder.relative_to(self.folder).parts), '.')}/"

    @property
    def strays(self) -> dict[str, Path]:
        """The links to files that are not packed themselves, but those to be included."""
        packed = {self.folder.resolve() / name for name in self.files.keys() - self.links.keys()}
        return {
            name: target
            for name, target in sorted(self.links.items())
            if name not in self.include and target not in packed
        }

    def leave_out(self, path: Path, why: Why) -> None:
        slash = "/" if why is Why.STATE else ""
        self.left_out[why].add(f"{path.relative_to(self.folder).as_posix()}{slash}")


def pack_script(
    script: Path,
    root: Path | None = None,
    *,
    include: Iterable[str] = (),
    more: Mapping[str, bytes] | None = None,
) -> Packed:
    """The archive of the folder `root`, by default the one that holds `script`, which is in it.

    Left out are what .gitignore names, and always names that begin with a dot, Python's caches, virtual environments,
    the state of local stacks, what `trainmaster download` wrote, and files that seem to hold a secret. Links to packed
    files are packed as files.

    Args:
        script: path of a Python file.
        root: a folder above it.
        include: paths in the folder, with '/', of files that are packed though they seem to hold a secret or are links
            to files that are not packed.
        more: files to add, by their names in the archive.

    Raises:
        ClientRefused: `script` is not a Python file or not in `root`, the folder is itself a stack's state, a file
            cannot be read, a Python file seems to hold a secret, a link leads to a file that is not packed, a name of `include`
            would not be packed anyway, a .gitignore is too large or has too many wildcards, or the folder has more than
            FILES_MAX files or BYTES_MAX bytes; the message has the entries that take most.
    """
    if not script.is_file():
        raise ClientRefused(_in_place_of(script, root))
    if script.suffix == ".ipynb":
        raise ClientRefused(notebook_text(str(script)))
    if script.suffix != ".py":
        raise ClientRefused(f"{str(script)!r} is not a Python script: its name must end in .py.")
    shown, script = str(script), Path(os.path.normpath(script.absolute()))
    folder = script.parent if root is None else Path(os.path.normpath(root.absolute()))
    if not script.is_relative_to(folder):
        raise ClientRefused(
            f"{shown!r} is not in the root {str(folder)!r}. Move it there, or name another root."
        )
    if is_state(folder):
        raise ClientRefused(
            f"The script's folder {str(folder)!r} is a local stack's state folder, which holds access tokens. "
            "Move the script to a separate folder."
        )
    try:
        found = _Found(folder=folder, include=frozenset(os.path.normpath(name) for name in include))
        for path, size_bytes in _walk(folder, ignored_above(folder), found):
            found.add(path, size_bytes)
        _check_included(found)
        _check_links(found)
        _check_size(found)
        return _archive_of_files(found, script.relative_to(folder).as_posix(), more or {})
    except OSError as error:
        raise ClientRefused(f"{error.filename or folder}: {error.strerror or error}") from error


def notebook_text(name: str) -> str:
    """What to do with a notebook."""
    made = shlex.quote(f"{name.removesuffix('.ipynb')}.py")
    return (
        f"{name}: a notebook, which no job runs. Make a script of it: jupyter nbconvert --to script {shlex.quote(name)}\n"
        f"Then submit that: trainmaster submit --script {made}"
    )


def _in_place_of(script: Path, root: Path | None) -> str:
    """Why the name of a script has no file, and the repair."""
    missing = f"There is no file {str(script)!r}."
    repair = "Name the script to run: --script train.py"
    if root is not None:
        repair = "Correct the name, which is a path from script.root, or else from the request's folder."
    if script.is_dir():
        missing = f"{str(script)!r} is a folder."
        inside = sorted(script.glob("*.py"), key=lambda each: (each.name != _USUAL, each.name))
        if inside and (root is None or inside[0].absolute().is_relative_to(root.absolute())):
            name = inside[0] if root is None else inside[0].absolute().relative_to(root.absolute())
            return f"{missing} Name the script in it, for example {name.as_posix()!r}."
    near = nearest_names(script.name, [each.name for each in sorted(script.parent.glob("*.py"))])
    return f"{missing} {near or repair}"


def _walk(folder: Path, ignored: IgnoredPaths, found: _Found) -> Iterator[tuple[Path, int]]:
    waiting, downloaded = [(folder, ignored)], set[Path]()
    while waiting:
        here, ignored = waiting.pop()
        downloaded |= {here / path for path in read_downloaded(here)}
        for entry in _entries(here, found):
            path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if _is_never_packed(entry) or ignored.holds(path, is_folder=is_folder):
                continue
            if is_folder and is_state(path):
                found.leave_out(path, Why.STATE)
            elif is_folder:
                waiting.append((path, ignored.within(path)))
            elif not _leads_to(entry.is_file):
                found.leave_out(path, _why_no_file(entry))
            elif path in downloaded:
                found.leave_out(path, Why.DOWNLOADED)
            else:
                if entry.is_symlink():
                    found.links[path.relative_to(folder).as_posix()] = path.resolve()
                yield path, entry.stat().st_size


def _why_no_file(entry: "os.DirEntry[str]") -> Why:
    """Of what is neither a file nor a folder, nor a link to a file."""
    if _leads_to(entry.is_dir):
        return Why.LINK
    return Why.SPECIAL if _leads_to(Path(entry.path).exists) else Why.BROKEN


def _leads_to(kind: Callable[[], bool]) -> bool:
    """Whether an entry, or what it links to, is of that kind; a link to itself leads nowhere."""
    try:
        return kind()
    except OSError:
        return False


def _entries(folder: Path, found: _Found) -> Iterator["os.DirEntry[str]"]:
    top, others = found.top_of(folder), found.seen.total()
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries, start=1):
            found.seen[top] += 1
            if others + number > SEEN_MAX:
                raise _too_many(found, f"more than {SEEN_MAX:,} files and folders", found.seen)
            yield entry


def _is_never_packed(entry: "os.DirEntry[str]") -> bool:
    """Settings of tools, which may hold credentials, and what Python makes again."""
    if entry.name.startswith(".") or entry.name in _CACHES or entry.name.endswith(_CACHED):
        return True
    return _leads_to(entry.is_dir) and Path(entry.path, _VIRTUAL_ENVIRONMENT).exists()


def _check_included(found: _Found) -> None:
    missing = sorted(found.include - found.files.keys())
    if missing:
        raise ClientRefused(
            f"--include {', '.join(map(repr, missing))}: no such file would be packed from {str(found.folder)!r}. Name a "
            "file by its path in that folder; what .gitignore names, and names that begin with a dot, are never packed."
        )


def _check_links(found: _Found) -> None:
    """Refuse links to files that are not packed: they could be anything that this user can read."""
    strays = found.strays
    if strays:
        shown = [f"{name} -> {target}" for name, target in list(strays.items())[:STRAYS_SHOWN]]
        more = len(strays) - len(shown)
        raise ClientRefused(
            f"Links in the script's folder {str(found.folder)!r} lead out of it, or to files that are not packed: "
            f"{', '.join(shown)}{f' and {more} more' if more else ''}. Copy the files there, name the links in a "
            f".gitignore, or pack what they lead to with --include {min(strays)}"
        )


def _check_size(found: _Found) -> None:
    size, count = found.sizes.total(), len(found.files)
    if size > BYTES_MAX:
        entries = found.sizes.most_common(LARGEST_SHOWN)
        largest = ", ".join(f"{name} ({size_text(each)})" for name, each in entries)
        what = f"is too large to upload: {size_text(size)} in {count:,} files"
        raise _size_refusal(found, what, f"The largest entries: {largest}")
    if count > FILES_MAX:
        raise _too_many(found, f"{count:,}", found.counts)


def _too_many(found: _Found, count: str, by_entry: "Counter[str]") -> ClientRefused:
    shown = ", ".join(f"{name} ({number:,})" for name, number in by_entry.most_common(LARGEST_SHOWN))
    return _size_refusal(found, f"has too many files to upload: {count}", f"Most of them are in: {shown}")


def _size_refusal(found: _Found, what: str, where: str) -> ClientRefused:
    return ClientRefused(
        f"The script's folder {str(found.folder)!r} {what}; at most {size_text(BYTES_MAX)} in "
        f"{FILES_MAX:,} files are allowed.\n{where}.\n"
        "Name data and results in a .gitignore there, and have the script read data from Cloud Storage; or pack a folder "
        "below it: --root DIR, or script.root"
    )


def _archive_of_files(found: _Found, script: str, more: Mapping[str, bytes]) -> Packed:
    """The archive of the found files but those with a secret; a program that lacks one of its modules is refused."""
    if script not in found.files:
        why = next((each for each in Why if script in found.left_out[each]), ".gitignore names it")
        raise ClientRefused(f"{str(found.folder / script)!r} would not be packed: {why}.")
    packed = io.BytesIO()
    left = BYTES_MAX
    names: list[str] = []
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, path in sorted(found.files.items()):
            content = _read(path, left)
            left -= len(content)
            if name not in found.include and (kind := find_secret(name, content)):
                if name.endswith(".py"):
                    raise _secret_in_program(name, kind)
                found.left_out[Why.CONFIDENTIAL].add(f"{name} ({kind})")
                continue
            _add(tar, name, content, mode=0o755 if os.access(path, os.X_OK) else 0o644)
            names.append(name)
        for name, content in sorted(more.items()):
            _add(tar, name, content)
    return Packed(
        content=packed.getvalue(),
        file=script,
        script=found.folder / script,
        files=tuple(names),
        left_out={why: tuple(sorted(found.left_out[why])) for why in Why if found.left_out[why]},
    )


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


def _secret_in_program(name: str, kind: str) -> ClientRefused:
    return ClientRefused(
        f"{name} seems to hold {kind}, and everyone who can read the bucket could read it there. Keep it in Secret "
        f"Manager and have the program read it, then revoke this one; or name the file in a .gitignore; or, if it is "
        f"no secret: --include {name}"
    )


def _read(path: Path, most_bytes: int) -> bytes:
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ClientRefused(f"{str(path)!r} grew while it was packed. Try again once it is written.")
    return content
