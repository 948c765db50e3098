"""AIP_MODEL_DIR, a gs:// URI, is found where a program gives it to a function for plain files, and nowhere else."""

from pathlib import Path

import pytest

from tests.inspect.test_checks import examined
from trainmaster.inspect.finding import Finding, Level, Subject

HEADER = "import os, io, pathlib, shutil, joblib, numpy as np, torch\nfrom pathlib import Path\n"
DIR = 'os.environ["AIP_MODEL_DIR"]'


def found(folder: Path, text: str) -> list[Finding]:
    program = folder / "train.py"
    program.write_text(HEADER + text)
    return [
        each for each in examined(program) if each.subject is Subject.MODEL_DIR and each.level is Level.ERROR
    ]


@pytest.mark.parametrize(
    "text",
    [
        f'open({DIR} + "/m", "wb")',
        f'open(file=os.path.join({DIR}, "m"), mode="x")',
        f"folder = {DIR}\nwith io.open(f'{{folder}}/m', 'a') as file: pass",
        "os.makedirs(os.getenv('AIP_MODEL_DIR'), exist_ok=True)",
        "folder = os.environ.get('AIP_MODEL_DIR', 'model')\nos.mkdir(folder)",
        f'joblib.dump(model, Path({DIR}) / "m.joblib")',
        f'torch.save(model.state_dict(), os.path.join({DIR}, "m.pt"))',
        f'np.savez({DIR} + "m", w)',
        f'shutil.copytree("out", dst={DIR})',
        f"tokenizer.save_pretrained({DIR})",
        f'(Path({DIR}) / "m").write_bytes(b"")',
        f'with pathlib.Path({DIR}).joinpath("m").open("w") as file: pass',
        f"def where(): return {DIR}\nos.makedirs(where())",
        f"def save(folder): os.makedirs(folder)\nsave({DIR})",
        f"OUT = {DIR} or 'model'\ndef main():\n    open(OUT + 'm', 'w')",
    ],
)
def test_a_plain_file_function_with_the_uri_is_a_fault(text: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, text)
    assert "writes plain files, and AIP_MODEL_DIR, which it is given, is a gs:// URI" in finding.found
    assert 'os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1).' in finding.repair
    assert finding.repair.endswith("Make this folder first: os.makedirs(path, exist_ok=True).")


@pytest.mark.parametrize(
    "text",
    [
        f'open({DIR}.replace("gs://", "/gcs/") + "m", "wb")',
        f'folder = {DIR}\nif folder.startswith("gs://"): folder = upload(folder)\nos.makedirs(folder)',
        f'bucket = {DIR}[5:]\nos.makedirs("/gcs/" + bucket)',
        f'open("local", "w").write({DIR})',
        f"open({DIR} + 'm')",
        f"model.save({DIR})",
        f'from fsspec import open\nopen({DIR} + "m", "wb")',
        f'import tensorflow as tf\ntf.io.gfile.makedirs({DIR})\ntf.io.gfile.GFile({DIR} + "m", "w")',
        f"from etils import epath\n(epath.Path({DIR}) / 'm').write_text('')",
        f"os.makedirs('model')\nupload('model', {DIR})",
        f"os.makedirs(local_copy_of({DIR}))",
    ],
)
def test_a_program_that_makes_a_path_of_it_or_uses_a_function_for_uris_is_none(
    text: str, tmp_path: Path
) -> None:
    assert found(tmp_path, text) == []
