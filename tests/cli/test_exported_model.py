"""An export is believed only when every file is what its manifest says."""

import hashlib
import json
from pathlib import Path

import pytest

from trainmaster.cli.demo.model import ExportDamaged, verified_export
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES


@pytest.fixture
def export(tmp_path: Path) -> Path:
    contents = {"saved_model.pb": b"graph", "variables/variables.index": b"index"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    files = [
        {"path": name, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
    ]
    (tmp_path / "export.json").write_text(json.dumps({"files": files}))
    return tmp_path


def test_a_whole_export_is_verified(export: Path) -> None:
    verified = verified_export(export)
    assert verified.size_bytes == 10


def test_every_difference_is_named_at_once(export: Path) -> None:
    (export / "saved_model.pb").write_bytes(b"grapH")
    (export / "variables/variables.index").unlink()
    with pytest.raises(ExportDamaged) as refusal:
        verified_export(export)
    assert "saved_model.pb: sha256" in str(refusal.value)
    assert "variables/variables.index: missing" in str(refusal.value)


def test_a_manifest_is_read_up_to_its_limit(export: Path) -> None:
    (export / "export.json").write_bytes(b" " * MAX_MANIFEST_BYTES + b"{}")
    with pytest.raises(ExportDamaged, match=f"it has more than {MAX_MANIFEST_BYTES} bytes"):
        verified_export(export)


def test_a_file_of_another_size_is_named_with_both_sizes(export: Path) -> None:
    (export / "saved_model.pb").write_bytes(b"longer than before")
    with pytest.raises(ExportDamaged, match=r"saved_model\.pb: 18 bytes, the manifest says 5"):
        verified_export(export)


def test_a_missing_manifest_is_no_export(tmp_path: Path) -> None:
    with pytest.raises(ExportDamaged, match=r"No readable export\.json"):
        verified_export(tmp_path)
