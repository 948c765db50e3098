"""A model cut in two after one of its layers; the parts share its layers with it."""

from collections.abc import Callable
from typing import Any

from trainer.faults import Unusable, nearest
from trainer.training.keras_models import functional


def freeze_backbone(model: Any, layer: str) -> None:
    """Make a layer, and those before it, untrainable.

    Raises:
        Unusable: the model has no such layer, or nothing after it that can be trained.
    """
    for each in backbone_of(model, layer).layers:
        each.trainable = False
    if not model.trainable_variables:
        raise Unusable(
            f"--train=head: nothing is trained after the layer {layer!r}. Let the workload's `head` name an earlier layer."
        )


def backbone_of(model: Any, layer: str) -> Any:
    """A model from the inputs to the outputs of a layer, which shares the layers of `model`.

    Raises:
        Unusable: there is no such layer, or the model is no graph of layers.
    """
    return _cut(model, layer, lambda features: (model.input, features))


def head_of(model: Any, layer: str) -> Any:
    """A model from the outputs of a layer to those of `model`, compiled as that is, with its layers and optimizer.

    Raises:
        Unusable: as `backbone_of`.
    """
    head = _cut(model, layer, lambda features: (features, model.output))
    how = {**model._compile_config.config, "optimizer": model.optimizer}  # noqa: SLF001 - both Keras have it; no copies
    head.compile(**how)
    return head


def _cut(model: Any, layer: str, ends: Callable[[Any], tuple[Any, Any]]) -> Any:
    names = [each.name for each in model.layers]
    if layer not in names:
        raise Unusable(
            f"--train=head: the workload says that the head begins after the layer {layer!r}, and the model has none of "
            f"that name.{nearest(layer, names)}"
        )
    try:
        inputs, outputs = ends(model.get_layer(layer).output)
        return functional(model, inputs, outputs)
    except (AttributeError, ValueError) as error:
        raise Unusable(
            f"--train=head: the model cannot be cut after the layer {layer!r} ({str(error).splitlines()[0]}). Expected a "
            f"functional or sequential model, and a layer that is used once and that all its outputs depend on."
        ) from error
