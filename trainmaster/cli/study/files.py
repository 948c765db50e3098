"""A study's page and picture as files."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainmaster.cli.study.figure import png_of
from trainmaster.cli.study.page import page_of
from trainmaster.cli.study.study import Study


@dataclass(frozen=True, kw_only=True)
class StudyFiles:
    html: Path
    png: Path


def write_study(study: Study, directory: Path, *, model_uri: str | None, at: datetime) -> StudyFiles:
    """`study.html` and `study.png` in `directory`, which is made; older ones are replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    files = StudyFiles(html=directory / "study.html", png=directory / "study.png")
    files.html.write_text(page_of(study, model_uri=model_uri, at=at), encoding="utf-8")
    files.png.write_bytes(png_of(study))
    return files
