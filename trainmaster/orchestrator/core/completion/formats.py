"""The format of a model, judged by file names alone: the files are never opened."""

import re
from collections.abc import Iterable

OTHER = "other"
"""Files that match no row below."""

_BY_NAME = (
    ("saved_model", r"saved_model\.(pb|pbtxt)"),
    ("keras", r".+\.keras"),
    ("keras_h5", r".+\.(h5|hdf5)"),
    ("tflite", r".+\.(tflite|lite)"),
    ("hugging_face", r"(model|diffusion_pytorch_model|adapter_model)(-\d+-of-\d+)?\.safetensors"),
    ("hugging_face", r"pytorch_model(-\d+-of-\d+)?\.bin"),
    ("safetensors", r".+\.safetensors"),
    ("torchscript", r".+\.(torchscript|torchscript\.pt|ptl)"),
    ("torch_export", r".+\.pt2"),
    ("onnx", r".+\.onnx"),
    ("pytorch", r".+\.(pt|pth|mar|ckpt)"),
    ("xgboost", r".+\.(ubj|bst|xgb|xgboost)"),
    ("lightgbm", r".*(lightgbm|lgbm?)[^/]*\.(txt|model)|.+\.lgbm?"),
    ("catboost", r".+\.cbm"),
    ("orbax", r"_CHECKPOINT_METADATA|_METADATA|manifest\.ocdbt"),
    ("flax", r".+\.msgpack"),
    ("scikit_learn", r".+\.(joblib|skops)"),
    ("pickle", r".+\.(pkl|pickle)"),
    ("tensorflow_checkpoint", r".+\.index"),
)
"""Ordered: if several rows match, the first names the format.

Sources: the file names that each library's saving functions write, or that its guides use: Keras `model.save`,
`tf.saved_model.save`, `torch.save`, `torch.jit.save`, `torch.export.save`, `torch.onnx.export`, transformers'
`save_pretrained`, XGBoost's `save_model`, LightGBM's `save_model`, `joblib.dump`, Orbax's checkpointers.
"""
_EXPRESSIONS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _BY_NAME)


def format_of(paths: Iterable[str]) -> str:
    """The format of the model that consists of these files, given as paths relative to its directory."""
    names = {path.rpartition("/")[2] for path in paths}
    found = (name for name, expression in _EXPRESSIONS if any(map(expression.fullmatch, names)))
    return next(found, OTHER)
