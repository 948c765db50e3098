"""Keras 3 saves only to a .keras file: a bare folder is a fault, and every repair names a file that Keras can write."""

from pathlib import Path

import pytest

from tests.inspect.test_checks import complaints, examined
from trainmaster.inspect.finding import Finding, Level, Subject
from trainmaster.inspect.surroundings import Surroundings

KERAS_3 = "import os, tempfile, keras\nmodel = keras.Sequential()\n"
KERAS_2 = (
    'import os, tempfile\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\nimport tensorflow as tf\n'
    "model = tf.keras.Sequential()\n"
)
TF_KERAS = "import os\nimport tensorflow as tf\nmodel = tf.keras.Sequential()\n"
FLAGS = "import argparse\nparser = argparse.ArgumentParser()\nargs = parser.parse_args()\n"
DIR = 'os.environ["AIP_MODEL_DIR"]'


def found(folder: Path, text: str, surroundings: Surroundings | None = None) -> list[Finding]:
    program = folder / "train.py"
    program.write_text(text)
    of_dir = complaints(examined(program, surroundings=surroundings))
    return [each for each in of_dir if each.subject is Subject.MODEL_DIR and each.level is Level.ERROR]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"model.save({DIR})", "AIP_MODEL_DIR itself"),
        (f"folder = {DIR}\nmodel.save(folder)", "AIP_MODEL_DIR itself"),
        ("model.save(os.getenv('AIP_MODEL_DIR', 'model'))", "AIP_MODEL_DIR itself"),
        (f"model.save(filepath={DIR} or 'x.keras')", "AIP_MODEL_DIR itself"),
        (f"model.save({DIR} if chief else tempfile.mkdtemp())", "AIP_MODEL_DIR itself"),
        (f"keras.models.save_model(model, {DIR})", "AIP_MODEL_DIR itself"),
        (f"def save(where): model.save(where)\nsave({DIR})", "AIP_MODEL_DIR itself"),
        (f"{FLAGS}parser.add_argument('--out', default={DIR})\nmodel.save(args.out)", "AIP_MODEL_DIR itself"),
        (f"model.save(os.path.join({DIR}, 'model'))", "a path that ends in 'model'"),
        (f"model.save({DIR} + '/1')", "a path that ends in '/1'"),
        (f"model.save(f'{{{DIR}}}/final')", "a path that ends in '/final'"),
    ],
)
def test_keras_3_given_a_folder_is_a_fault(text: str, words: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, KERAS_3 + text)
    assert f"{words}, and Keras 3 saves only to a file that ends in .keras" in finding.found
    assert finding.repair.startswith(f"Save to os.path.join({DIR}, ")
    assert finding.repair.endswith('.keras").')


@pytest.mark.parametrize(
    "text",
    [
        f"model.save(os.path.join({DIR}, 'model.keras'))",
        f"model.save({DIR} + '/m.keras')",
        f"model.export({DIR})",
        f"NAME = 'm.keras'\nmodel.save(os.path.join({DIR}, NAME))",
        f"model.save(os.path.join({DIR}, named()))",
        f"model.save({DIR}.replace('gs://', '/gcs/') + 'm.h5')",
        f"model.save('/tmp/m')\nupload('/tmp/m', {DIR})",
    ],
)
def test_what_keras_3_can_save_is_not_complained_of(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, KERAS_3 + text) == []


def test_an_hdf5_file_at_the_uri_is_a_fault(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"{KERAS_3}model.save(os.path.join({DIR}, 'best.h5'))")
    assert "writes HDF5, a plain file" in finding.found
    assert finding.repair == f'Save to os.path.join({DIR}, "best.keras").'


@pytest.mark.parametrize(
    ("program", "surroundings"),
    [
        (KERAS_2, None),
        (TF_KERAS, Surroundings(tensorflow=(2, 15))),
        (TF_KERAS, Surroundings(variables={"TF_USE_LEGACY_KERAS": "1"})),
        (TF_KERAS.replace("tf.keras", "tf_keras").replace("as tf", "as tf, tf_keras"), None),
        ("import os, torch\nmodel = torch.nn.Linear(1, 1)\n", None),
    ],
)
def test_keras_2_and_other_frameworks_may_save_to_the_folder(
    program: str, surroundings: Surroundings | None, tmp_path: Path
) -> None:
    assert found(tmp_path, f"{program}model.save({DIR})", surroundings) == []


@pytest.mark.parametrize(
    ("program", "saved", "repair"),
    [
        (KERAS_3, "model.save('best.keras')", f'os.path.join({DIR}, "best.keras").'),
        (KERAS_3, "model.save('out/model.h5')", f'os.path.join({DIR}, "model.keras").'),
        (KERAS_3, "model.save('v1.2')", f'os.path.join({DIR}, "v1.2.keras").'),
        (KERAS_3, "model.save(named())", f'os.path.join({DIR}, "model.keras").'),
        (KERAS_3, "model.export('out')", f"{DIR}."),
        (KERAS_2, "model.save('out/')", f"{DIR}."),
        (KERAS_2, "model.save('m.keras')", f'os.path.join({DIR}, "m.keras").'),
        (TF_KERAS, "model.save('m')", f'os.path.join({DIR}, "m.keras").'),
    ],
)
def test_the_repair_of_a_model_saved_elsewhere_succeeds(
    program: str, saved: str, repair: str, tmp_path: Path
) -> None:
    (finding,) = found(tmp_path, program + saved)
    assert "never reads AIP_MODEL_DIR" in finding.found
    assert finding.repair == f"Save to {repair}"
    method = saved.partition("(")[0]
    mended = repair.removesuffix(".")
    assert found(tmp_path, f"{program}{method}({mended})") == []


def test_the_repair_of_a_plain_file_is_below_the_mount(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "import torch\ntorch.save(network, 'm.pt')\n")
    assert finding.repair.startswith('Save below os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1)')
