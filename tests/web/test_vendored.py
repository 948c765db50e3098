"""The scripts of others that pages load are whole, known by version and licence, and the only ones."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainmaster.web.rendering import TEMPLATES

STATIC = TEMPLATES.parent / "static"
VENDOR = STATIC / "vendor"
FILES: list[dict[str, Any]] = json.loads((VENDOR / "vendored.json").read_text())["files"]
LICENCES = {"0BSD", "Apache-2.0", "MIT"}
LOADED = re.compile(r"""(?:src|href)=["']([^"'{}]+)["']""")


@pytest.mark.parametrize("described", FILES, ids=lambda each: each["file"])
def test_a_vendored_file_is_what_its_description_says(described: dict[str, Any]) -> None:
    content = (VENDOR / described["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == described["sha256"]
    assert described["licence"] in LICENCES
    assert re.fullmatch(r"\d+\.\d+\.\d+", described["version"])
    licences = {path.name.partition(".")[2] for path in VENDOR.glob("LICENSE.*")}
    assert described["package"].partition(".")[0] in licences


def test_every_vendored_file_is_described() -> None:
    scripts = {path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    assert scripts == {each["file"] for each in FILES}


def test_the_notice_and_the_list_inside_the_wheel_have_every_vendored_file() -> None:
    root = Path(__file__).resolve().parents[2]
    listed = json.loads((root / "trainmaster" / "web" / "vendored.cdx.json").read_text())["components"]
    described = {
        (f"pkg:npm/{each['package']}@{each['version']}", each["licence"], each["sha256"]) for each in FILES
    }
    assert described == {
        (each["purl"], each["licenses"][0]["license"]["id"], each["hashes"][0]["content"]) for each in listed
    }
    for_tests = json.loads((root / "tests" / "web" / "browser" / "vendor" / "vendored.json").read_text())[
        "files"
    ]
    notice = (root / "NOTICE").read_text()
    assert [
        each for each in (*FILES, *for_tests) if each["version"] not in notice or each["file"] not in notice
    ] == []


# A study in one file has its scripts and style inside, allowed by their hashes: tests/cli/study.
OF_PAGES = sorted(set(TEMPLATES.rglob("*.html")) - {TEMPLATES / "study_file.html"})


@pytest.mark.parametrize("template", OF_PAGES, ids=lambda path: path.name)
def test_a_template_loads_only_our_own_files_and_has_no_inline_script_or_style(template: Path) -> None:
    text = template.read_text()
    loaded = [each for each in LOADED.findall(text) if each.startswith("/static/")]
    assert not [each for each in loaded if not (STATIC / each.removeprefix("/static/")).is_file()]
    assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", text)
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert not re.findall(r"\|\s*safe\b|Markup|autoescape", text)
    for script in re.findall(r"<script[^>]*>", text):
        assert re.search(r'src="/static/|type="application/json"', script), script


@pytest.mark.parametrize("script", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_our_scripts_make_no_markup_of_texts_and_ask_no_other_host(script: Path) -> None:
    text = script.read_text()
    assert '"use strict";' in text
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.findall(r"https?://(?!www\.w3\.org/)", text)
