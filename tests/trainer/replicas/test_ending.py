"""Which of TensorFlow's errors say that another replica is lost, so that a restart of the job helps."""

import pytest

from trainer.replicas.ending import is_loss_of_peer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

IN_NODE = "\n\t [[{{node CollectiveReduceV2}}]] [Op:__inference_run_one_123]"


@pytest.mark.parametrize(
    ("kind", "message", "is_loss"),
    [
        ("InternalError", "NCCL: unhandled system error (run with NCCL_DEBUG=INFO for details). Set NCCL_DEBUG=WARN for detail.", True),
        ("UnknownError", "Error invoking NCCL: remote process exited or there was a network error", True),
        ("InternalError", "NCCL: internal error - please report this issue to the NCCL developers. Set NCCL_DEBUG=WARN for detail.", True),
        ("UnknownError", "Error invoking NCCL: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", True),
        ("InternalError", "NCCL: invalid usage (run with NCCL_DEBUG=WARN for details)." + IN_NODE, False),
        ("InternalError", "Collective ops is aborted by: Socket closed", True),
        ("InternalError", "CUDA: out of memory", False),
        ("UnavailableError", "Connection reset by peer", True),
        ("UnknownError", "Failed to get convolution algorithm.", False),
        ("ResourceExhaustedError", "OOM when allocating tensor", False),
    ],
)  # fmt: skip
def test_errors_of_nccl_count_as_a_lost_peer_unless_it_was_called_wrongly(
    kind: str, message: str, is_loss: bool
) -> None:
    import tensorflow as tf  # not at every worker's collection

    assert is_loss_of_peer(getattr(tf.errors, kind)(None, None, message)) is is_loss
