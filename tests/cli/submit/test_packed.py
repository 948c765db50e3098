"""Notes on a script's archive, printed before it is uploaded."""

from pathlib import Path

from trainmaster.cli.submit.script_notes import folder_notes, size_warnings
from trainmaster.client.submission.pack import LARGE_BYTES, pack_script


def test_results_of_an_earlier_run_beside_the_script_are_reported_with_their_size(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trains')\n")
    assert list(size_warnings(pack_script(tmp_path / "train.py"))) == []
    for name, size in {"model/saved_model.pb": LARGE_BYTES, "checkpoints/1": 512 * 1024}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(bytes(size))
    (line,) = size_warnings(pack_script(tmp_path / "train.py"))
    assert line.startswith("warning: 1.5 MiB are packed with the script; the largest entries: ")
    assert "model/ (1 MiB), checkpoints/ (512 KiB), train.py (16 bytes)." in line
    (tmp_path / ".gitignore").write_text("model/\ncheckpoints/\n")
    assert list(size_warnings(pack_script(tmp_path / "train.py"))) == []


def test_the_notes_on_a_folder_are_printed_once_however_many_scripts_of_it_are_sent(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "broken").symlink_to("nowhere")
        (tmp_path / folder / "data.bin").write_bytes(bytes(LARGE_BYTES + 1))
        for script in ("train.py", "deep/tune.py"):
            (tmp_path / folder / script).touch()
    noted: set[Path] = set()
    counts = [
        len(list(folder_notes(pack_script(tmp_path / folder / script, tmp_path / folder), noted)))
        for folder, script in (("one", "train.py"), ("one", "deep/tune.py"), ("two", "train.py"))
    ]
    assert counts == [2, 0, 2]
    assert noted == {tmp_path / "one", tmp_path / "two"}
