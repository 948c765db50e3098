"""Notes on a script's archive, printed before it is uploaded."""

from pathlib import Path

from trainmaster.cli.submit.script_notes import folder_notes
from trainmaster.client.submission.pack import pack_script


def test_the_notes_on_a_folder_are_printed_once_however_many_scripts_of_it_are_sent(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "broken").symlink_to("nowhere")
        for script in ("train.py", "deep/tune.py"):
            (tmp_path / folder / script).touch()
    noted: set[Path] = set()
    counts = [
        len(list(folder_notes(pack_script(tmp_path / folder / script, tmp_path / folder), noted)))
        for folder, script in (("one", "train.py"), ("one", "deep/tune.py"), ("two", "train.py"))
    ]
    assert counts == [1, 0, 1]
    assert noted == {tmp_path / "one", tmp_path / "two"}
