"""The page "Use a model": its code loads what the examples save."""

import json
import os
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.client.served import ROOT
from tests.processes import run_to_end

PAGE = (ROOT / "docs/how-to/use-a-model.md").read_text()
SAVING = {
    "tf.keras": (
        "import tensorflow as tf\n"
        "model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])\n"
        'model.save("model/model.keras")\n'
    ),
    "saved_model": (
        "import tensorflow as tf\n"
        "model = tf.Module()\n"
        "double = tf.function(lambda x: {'y': 2 * x}, [tf.TensorSpec([None], name='x')])\n"
        'tf.saved_model.save(model, "model", signatures=double)\n'
    ),
    "joblib": (
        "import joblib\n"
        "from sklearn.dummy import DummyClassifier\n"
        'joblib.dump(DummyClassifier().fit([[0, 0], [1, 1]], [0, 1]), "model/model.joblib")\n'
    ),
    "torch": (
        "import torch\n"
        "network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))\n"
        'torch.save(network.state_dict(), "model/model.pt")\n'
    ),
}
"""What saves a model as the examples do, by a word of the code that loads it."""
NEEDS = {"tf.keras": "tensorflow", "saved_model": "tensorflow", "joblib": "sklearn", "torch": "torch"}
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def block(word: str) -> str:
    (found,) = (text for text in BLOCKS if word in text)
    return str(found)


def test_every_block_is_run() -> None:
    assert len(BLOCKS) == len(SAVING)
    for word in SAVING:
        compile(block(word), word, "exec")


RUN = """
import contextlib, io, json, os, sys
printed = {}
for folder, text in json.load(sys.stdin).items():
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, folder, "exec"), {"__name__": "__main__"})
    printed[folder] = out.getvalue()
print(json.dumps(printed))
"""


def run_in_folders(texts: Mapping[Path, str]) -> dict[str, str]:
    """What each program prints in its folder; one process runs all, because TensorFlow takes seconds to load."""
    done = run_to_end(
        [sys.executable, "-c", RUN],
        input=json.dumps({str(folder): text for folder, text in texts.items()}),
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, str] = json.loads(done.stdout)
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("library", sorted(set(NEEDS.values())))
def test_the_code_of_the_page_loads_the_models_of_a_library(library: str, tmp_path: Path) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    words = {tmp_path / word: word for word in SAVING if NEEDS[word] == library}
    for folder in words:
        (folder / "model").mkdir(parents=True)
    run_in_folders({folder: SAVING[word] for folder, word in words.items()})
    printed = run_in_folders({folder: block(word) for folder, word in words.items()})
    assert all(printed[str(folder)] for folder in words)
