"""The bodies that Terraform's provider sends for our resources, as Terraform itself evaluates the configuration.

What the cloud alone knows, such as another resource's id, is the text "later".

A plan would need the provider and a project; `terraform console` needs neither.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.deploy.hcl import TERRAFORM, bare, blocks, loaded
from tests.deploy.plan import NUMBER, PROJECT, REGION
from tests.judges.provider import DATA, META, SINGULAR

_NO_VALUE = META | {"dynamic", "lifecycle", "__is_block__", "__comments__", "__inline_comments__"}
_MADE = re.compile(r"\b(?:data\.)?(?:google|archive|time)_\w+\.\w+(?:\[[^\]]*\])?(?:\.\w+|\[\d+\])*")
_LATER = '"later"'
_ROOT = f"""
module "plan" {{
  source          = "./plan"
  project         = var.project
  region          = var.region
  project_number  = "{NUMBER}"
  watched_buckets = var.watched_buckets
  teams           = var.teams
  notify          = var.notify
  ci              = var.ci
}}
"""


@cache
def bodies(**settings: str) -> Mapping[str, Mapping[str, Any]]:
    """By address and key, the arguments of every resource, without those that are null. `settings` are variables.

    Raises:
        AssertionError: Terraform refused the configuration; with what it said.
    """
    with tempfile.TemporaryDirectory() as copy:
        folder = Path(copy) / "terraform"
        shutil.copytree(TERRAFORM / "plan", folder / "plan")
        for path in (
            TERRAFORM / "variables.tf",
            *TERRAFORM.parent.glob("*.yaml"),
            *TERRAFORM.parent.glob("*.filter"),
        ):
            shutil.copy(path, folder if path.suffix == ".tf" else copy)
        (folder / "main.tf").write_text(_ROOT + "\n".join(_locals()))
        given = {"project": PROJECT, "region": REGION, **settings}
        _terraform(folder, "init", "-backend=false", "-input=false")
        flags = [f"-var={name}={value}" for name, value in given.items()]
        said = _terraform(folder, "console", *flags, given="jsonencode(local.judged)")
    # The console quotes a text, and the text is JSON.
    return {name: _without_nulls(each) for name, each in json.loads(json.loads(said)).items()}


def _terraform(folder: Path, *words: str, given: str = "") -> str:
    done = subprocess.run(
        ["terraform", *words, "-no-color"] if words[0] == "init" else ["terraform", *words], input=given, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _locals() -> Iterator[str]:
    """The root module's locals that no resource is part of, and `judged`, the resources as values."""
    own = {
        name: _written(value)
        for content in loaded().values()
        for each in content.get("locals", [])
        for name, value in each.items()
        if name not in _NO_VALUE
    }
    made = {name for name, text in own.items() if _MADE.search(text)}
    unknown = re.compile(rf"\blocal\.(?:{'|'.join(sorted(made))})\b(?:\[[^\]]*\])?")

    def known(text: str) -> str:
        text = re.sub(r"\bin google_\w+\.\w+", "in []", unknown.sub(_LATER, text))
        return re.sub(r"\beach\.(key|value)\b", r"each_\1", _MADE.sub(_LATER, text))

    yield "locals {"
    for name, text in own.items():
        if name not in made:
            yield f"  {name} = {text}"
    yield "  judged = {"
    for each in blocks():
        if each.kind == "resource" and each.type.startswith("google_"):
            body = known(_object(each.body, DATA["resources"][each.type]))
            loop = known(_written(each.body.get("for_each", "${{ only = null }}")))
            yield f'    "{each.type}.{each.name}" = {{ for each_key, each_value in {loop} : each_key => {body} }}'
    yield "  }\n}"


def _object(body: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
    """A block as a value: its blocks are lists where the provider takes more than one."""
    lists: dict[str, list[str]] = {}
    fields = {}
    for name, value in body.items():
        if name in _NO_VALUE:
            continue
        inner = _taken(name, taken)
        if "block" in inner:
            lists[name] = [f"[{_object(each, inner['block'])}]" for each in value]
        else:
            fields[name] = _written(value)
    for dynamic in body.get("dynamic", ()):
        for label, each in ((bare(name), each) for name, each in dynamic.items() if name not in _NO_VALUE):
            content = _object(each["content"][0], _taken(label, taken)["block"])
            loop = f"for {label}_key, {label}_value in {_written(each['for_each'])}"
            content = re.sub(rf"\b{label}\.(key|value)\b", rf"{label}_\1", content)
            lists.setdefault(label, []).append(f"[{loop} : {content}]")
    for name, parts in lists.items():
        joined = f"concat({', '.join(parts)})"
        fields[name] = joined if "list" in _taken(name, taken) else f"one({joined})"
    return "{ " + ", ".join(f"{name} = {text}" for name, text in fields.items()) + " }"


def _taken(name: str, taken: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = taken[SINGULAR.get(name, name)]
    return found


def _written(value: object) -> str:
    """A value of python-hcl2's as HCL again."""
    match value:
        case str() if value.startswith("${") and value.endswith("}"):
            return value[2:-1]
        case str():
            return value
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case dict():
            return "{ " + ", ".join(f"{name} = {_written(each)}" for name, each in value.items()) + " }"
        case _:
            return json.dumps(value)


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_nulls(each) for name, each in value.items() if each is not None}
        case list():
            return [_without_nulls(each) for each in value]
        case _:
            return value
