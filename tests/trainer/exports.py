"""What an export says about itself, and what a server gets from it."""

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jsonschema import Draft202012Validator

from tests.trainer.conftest import ROOT, run_to_end

# Plain TensorFlow in a fresh process, without the trainer: what a server would do.
SERVE = """
import json, sys
import tensorflow as tf
from tensorflow.io import encode_jpeg, encode_png
model = tf.saved_model.load(sys.argv[1])
signature = model.signatures["serving_default"]
picture = tf.cast(tf.random.stateless_uniform([70, 50, 3], (1, 2), 0, 256, tf.int32), tf.uint8)
images = [encode_jpeg(picture).numpy(), encode_png(picture).numpy(), encode_png(picture[..., :1]).numpy()]
inputs = {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in signature.structured_input_signature[1].items()}
answer = {name: value.numpy().tolist() for name, value in signature(image_bytes=tf.constant(images)).items()}
answer["class_name"] = [name.decode() for name in answer["class_name"]]
assert "trainer" not in sys.modules
print(json.dumps({"inputs": inputs, "answer": answer}))
"""


def run_program(program: str, *arguments: str) -> Any:
    """The JSON that `program` prints in a fresh process with these arguments."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(program)
        return json.loads(run_to_end("program", *arguments, folder=folder, cwd=folder))


def check_export(model_dir: Path) -> dict[str, Any]:
    """The manifest, after checking it against its schema and the files against it."""
    manifest: dict[str, Any] = json.loads((model_dir / "export.json").read_text())
    schema = json.loads((ROOT / "schemas" / "model_export.v1.schema.json").read_text())
    Draft202012Validator(schema).validate(manifest)
    listed = {entry["path"]: (entry["size_bytes"], entry["sha256"]) for entry in manifest["files"]}
    content = {
        path.relative_to(model_dir).as_posix(): path.read_bytes()
        for path in model_dir.rglob("*")
        if path.is_file() and path.name != "export.json"
    }
    assert listed == {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in content.items()}
    assert "saved_model.pb" in listed
    return manifest
