"""The changes that the options of `submit` make in a request before it is checked, and the faults of what they gave."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trainmaster.client.submission.settings import RequestSetting, with_settings
from trainmaster.orchestrator.core.documents.faults import Fault, cut, is_within, json_path
from trainmaster.orchestrator.core.documents.values import Document, mapping_at
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.draft import ROLES
from trainmaster.orchestrator.core.requests.reading import SMALL_CLUSTER

SETTING_MAX_CHARS = 200
_QUOTE_IT = re.compile(r'quote it: ("[^"]*")')
_OF_MACHINE = ("machine", "gpu", "accelerator", "tpu_topology")


@dataclass(frozen=True, kw_only=True)
class Edits:
    """The options that change a request; None, or no arguments, leaves it as it is.

    `workers` are those beside the chief, on the chief's machine; 0 removes them. `machine` and `gpu` are for all roles.
    `include`, `root` and `force` change no request: they say how its script is packed, and that it is sent though it
    would end at once.
    """

    script: Path | None = None
    module: str | None = None
    root: Path | None = None
    launcher: str | None = None
    args: tuple[str, ...] = ()
    name: str | None = None
    image: str | None = None
    machine: str | None = None
    gpu: str | None = None
    workers: int | None = None
    settings: tuple[RequestSetting, ...] = ()
    include: tuple[str, ...] = ()
    force: bool = False

    @property
    def any(self) -> bool:
        return self != Edits(include=self.include, root=self.root, force=self.force)


NO_EDITS = Edits()


def new_request(edits: Edits) -> dict[str, Any]:
    """The request for a script or an image without a file: one small machine, and the model named after the program."""
    image = (edits.image or "").rpartition("/")[2].partition(":")[0].partition("@")[0]
    program = edits.script.stem if edits.script else (edits.module or image).rpartition(".")[2]
    return {"model_name": model_name_from(program), "cluster": SMALL_CLUSTER}


def edited_request(document: Mapping[str, Any], edits: Edits) -> dict[str, Any]:
    """A copy of a request in our own dialect with the edits; what it has of the wrong kind is left for the check.

    Raises:
        Refused: as `with_settings`.
    """
    changed = dict(document)
    changed |= {"model_name": edits.name} if edits.name is not None else {}
    changed |= {"image": edits.image} if edits.image is not None else {}
    changed |= {"args": list(edits.args)} if edits.args else {}
    changed |= {"script": {"file": edits.script.name}} if edits.script else {}
    changed |= {"script": {"module": edits.module}} if edits.module else {}
    if edits.launcher:
        changed["script"] = {**mapping_at(changed, "script"), "launcher": edits.launcher}
    if edits.machine is not None or edits.gpu is not None or edits.workers:
        changed.setdefault("cluster", SMALL_CLUSTER)
    if isinstance(changed.get("cluster"), dict):
        changed["cluster"] = _cluster(changed["cluster"], edits)
    return with_settings(changed, edits.settings)


def _cluster(cluster: Mapping[str, Any], edits: Edits) -> dict[str, Any]:
    changed = dict(cluster)
    asked = {key: value for key in ("machine", "gpu") if (value := getattr(edits, key)) is not None}
    for role in ROLES:
        if asked and isinstance(pool := changed.get(role), dict):
            changed[role] = {**asked, **{key: pool[key] for key in pool if key not in _OF_MACHINE}}
    chief = changed.get("chief")
    if edits.workers == 0:
        changed.pop("workers", None)
    elif edits.workers and isinstance(chief, dict):
        same = {key: chief[key] for key in _OF_MACHINE if key in chief}
        changed["workers"] = {**same, **mapping_at(changed, "workers"), "count": edits.workers}
    return changed


def _changed_paths(before: object, after: object, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """The JSONPath of each value of `after` that is not in `before`, or is another there."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, value in after.items():
            yield from _changed_paths(before.get(key), value, (*path, str(key)))
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        for index, (old, new) in enumerate(zip_longest(before, after)):
            yield from _changed_paths(old, new, (*path, index))
    elif before != after:
        yield json_path(path)


def _option_of(path: str, edits: Edits) -> str:
    """The option that set the value at this JSONPath of the edited request; empty for `--set`."""
    for option, value, pattern in (
        ("--gpu", edits.gpu, r"\$\.cluster\.\w+\.gpu"),
        ("--machine", edits.machine, r"\$\.cluster\.\w+\.machine"),
        ("--workers", edits.workers, r"\$\.cluster\.workers\.count"),
        ("--image", edits.image, r"\$\.image"),
        ("--name", edits.name, r"\$\.model_name"),
        ("--module", edits.module, r"\$\.script\.module"),
        ("--launcher", edits.launcher, r"\$\.script\.launcher"),
        ("the arguments behind --", edits.args or None, r"\$\.args(\[[0-9]+\])?"),
    ):
        if value is not None and re.fullmatch(pattern, path):
            return option
    return ""


def _setting_of(path: str, document: Mapping[str, Any], edits: Edits) -> tuple[RequestSetting, str] | None:
    """The setting that gave the value at this JSONPath of the edited request, above it or below it, and the JSONPath of that."""
    at = [(setting, json_path(setting.resolve_path(document))) for setting in edits.settings]
    found = [each for each in at if is_within(path, each[1]) or is_within(each[1], path)]
    return found[-1] if found else None


def find_spelled(document: Mapping[str, Any], read: Document, edits: Edits) -> dict[str, str]:
    """How the text and the settings write the values of the edited request, as in `Document.spelled`."""
    changed = tuple(_changed_paths(read.value, document))
    kept = {
        path: text
        for path, text in read.spelled.items()
        if not any(is_within(path, each) for each in changed)
    }
    for setting in edits.settings:
        here = json_path(setting.resolve_path(document))
        kept |= {f"{here}{path.removeprefix('$')}": text for path, text in setting.spelled.items()}
    return kept


def faults_with_options(
    faults: Iterable[Fault], written: object, changed: object, edits: Edits
) -> Iterator[Fault]:
    """The faults; one of a value that an option set has no place, for the file has another value there.

    It names the option, and stands once, even if the option set the same value for several roles.
    """
    paths = tuple(_changed_paths(written, changed)) if edits.any else ()
    seen = set[tuple[str, str, str]]()
    for fault in faults:
        if fault.source or not any(is_within(fault.path, path) for path in paths):
            yield fault
            continue
        option = _option_of(fault.path, edits)
        key = (option, fault.problem, fault.found)
        if not option:
            yield _with_setting(replace(fault, place=None), changed, edits)
        elif key not in seen:
            seen.add(key)
            yield replace(fault, source=option, place=None)


def _with_setting(fault: Fault, changed: object, edits: Edits) -> Fault:
    """The fault with the `--set` that gave the value, and a repair whose quotes survive a shell."""
    found = _setting_of(fault.path, changed, edits) if isinstance(changed, dict) else None
    if found is None:
        return fault
    setting, path = found
    key = setting.text.partition("=")[0]
    quotes = _QUOTE_IT.match(fault.repair)
    repair = fault.repair
    if quotes and fault.path == path:
        repair = f"write {_option_text(setting, f'{key}={quotes[1]}')}{fault.repair[quotes.end() :]}"
    elif quotes:
        repair = f"{quotes[0]}, and put single quotes around {key}=…{fault.repair[quotes.end() :]}"
    if not setting.text:
        return replace(fault, source=setting.option)
    text = key if fault.is_secret else setting.text
    return replace(fault, source=_option_text(setting, text), repair=repair)


def _option_text(setting: RequestSetting, text: str) -> str:
    return f"{setting.option} {shlex.quote(cut(text, SETTING_MAX_CHARS))}"
