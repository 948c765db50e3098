"""A hostile program in a confinement gets nowhere, as root or as another user: each attempt of `attacks.py`."""

import json
import os
import platform
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainstack.sandbox.probe import obstacle

from .conftest import User, run_confined

pytestmark = pytest.mark.skipif(obstacle() != "", reason="this machine does not allow namespaces")

_ATTACKS = Path(__file__).with_name("attacks.py")
_FILTERS = platform.machine() in ("x86_64", "aarch64")

NOTHING: list[str] = []
EXPECTED: dict[str, object] = {
    "inits_files": NOTHING,
    "inits_memory": ["EPERM"],
    "inits_life": "S",
    "others": ["ESRCH"],
    "abstract_socket": "ECONNREFUSED",
    "mounts": ["EPERM"],
    "devices": ["EPERM"],
    "device_files": ["EROFS"],
    "settings": NOTHING,
    "roots_information": NOTHING,
}
BY_THE_FILTER: dict[str, object] = {
    "keyrings": ["EPERM"],
    "new_namespaces": ["EPERM"],
    "newer_calls": ["ENOSYS"],
    "kernel_interfaces": ["EPERM"],
    "calls_with_other_numbers": "SIGSYS",
    "calls_of_x32": "ENOSYS",
    "set_user_id": ["EPERM"],
    "terminal": ["EPERM"],
    "privileges": {"NoNewPrivs": "1", "Seccomp": "2", "more capabilities": "0x0"},
}


@pytest.fixture(scope="module")
def outcomes(user: User) -> Iterator[dict[str, Any]]:
    name = f"trainmaster-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as outside, user.folder() as folder:
        outside.bind("\0" + name)
        outside.listen()
        outside_pids = f"{os.getpid()},{os.getppid()}"
        ended = run_confined(user, folder, _ATTACKS.read_text(), name, outside_pids)
        assert ended.status == 0, ended
        yield json.loads(ended.output)


@pytest.mark.parametrize("attempt", EXPECTED)
def test_a_program_cannot_leave_its_confinement(outcomes: dict[str, Any], attempt: str) -> None:
    assert outcomes[attempt] == EXPECTED[attempt]


@pytest.mark.skipif(not _FILTERS, reason="the filter of system calls is for x86-64 and AArch64")
@pytest.mark.parametrize("attempt", BY_THE_FILTER)
def test_a_program_is_refused_calls_that_none_needs(outcomes: dict[str, Any], attempt: str) -> None:
    assert outcomes[attempt] == BY_THE_FILTER[attempt]
