"""Every format is known by the names that its library writes."""

import pytest

from trainmaster.orchestrator.core.completion.model import OTHER, format_of


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"], "saved_model"),
        (["model/saved_model.pb", "fingerprint.pb"], "saved_model"),
        (["classifier.keras"], "keras"),
        (["weights.H5"], "keras_h5"),
        (["model.tflite"], "tflite"),
        (["config.json", "model-00001-of-00002.safetensors", "tokenizer.json"], "hugging_face"),
        (["config.json", "pytorch_model.bin"], "hugging_face"),
        (["lora.safetensors"], "safetensors"),
        (["scripted.torchscript.pt"], "torchscript"),
        (["exported.pt2"], "torch_export"),
        (["model.onnx", "model.onnx.data"], "onnx"),
        (["epoch=3.ckpt"], "pytorch"),
        (["model.pt"], "pytorch"),
        (["model.ubj"], "xgboost"),
        (["model.bst"], "xgboost"),
        (["lightgbm_model.txt"], "lightgbm"),
        (["model.cbm"], "catboost"),
        (["state/_METADATA", "state/manifest.ocdbt"], "orbax"),
        (["params.msgpack"], "flax"),
        (["model.joblib"], "scikit_learn"),
        (["model.pkl"], "pickle"),
        (["ckpt-1.index", "ckpt-1.data-00000-of-00001"], "tensorflow_checkpoint"),
        (["weights.bin", "README"], OTHER),
        (["notes.txt"], OTHER),
        (["keras"], OTHER),
    ],
)  # fmt: skip
def test_the_format_follows_from_the_names_of_the_files(paths: list[str], expected: str) -> None:
    assert format_of(paths) == expected
