"""The data that the trainer's own tests train on."""

from tests.trainer.conftest import horses_dir

__all__ = ["horses_dir"]
