"""`make setup`: what it installs, with old pips too, and how it continues."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.tools.set_up.checkout import Checkout, make_checkout

pytestmark = pytest.mark.slow(seconds=30)

OLD_PIPS = ("23.0.1", "24.0")
"""Those of Debian 12 and Ubuntu 24.04."""


@pytest.mark.parametrize("pip", OLD_PIPS)
def test_an_old_pip_installs_the_lock_though_a_newer_release_of_a_requirement_exists(
    checkout: Checkout, pip: str
) -> None:
    """Where the requirement has an extra, these pips do not apply the lock to it, so they must resolve nothing."""
    checkout.pip("install", "--disable-pip-version-check", f"pip=={pip}")
    checkout.index.add("beta", "2", lock=False)
    done = checkout.make_setup()
    assert done.returncode == 0, done.stderr
    assert checkout.pip("--version").startswith(f"pip {pip} ")
    assert (checkout.version_of("alpha"), checkout.version_of("beta")) == ("1", "1")
    assert checkout.stamp.exists()


def test_it_needs_no_uv_and_uses_none(tmp_path: Path) -> None:
    """Starts from nothing, as in a fresh clone."""
    checkout = make_checkout(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").write_text(f"#!/bin/sh\ntouch {tmp_path}/used\nexit 1\n")
    (programs / "uv").chmod(0o755)
    done = Checkout(root=checkout.root, index=checkout.index, path=f"{programs}:{checkout.path}").make_setup()
    assert done.returncode == 0, done.stderr
    assert checkout.version_of("alpha") == "1"
    assert not (tmp_path / "used").exists()


def test_it_says_what_it_does(checkout: Checkout) -> None:
    said = checkout.make_setup().stdout.splitlines()
    assert said[0].startswith("Installing requirements.lock: 3 packages")
    assert said[1] == "  downloaded 3 of 3; installing them"
    assert said[-1].startswith("Set up in ")
    assert len(said) < 6


def test_a_changed_lock_changes_the_environment(checkout: Checkout) -> None:
    assert checkout.make_setup().returncode == 0
    checkout.index.locked[:] = [
        each for each in checkout.index.locked if not each.startswith(("alpha", "beta"))
    ]
    checkout.index.add("beta", "2")
    done = checkout.make_setup()
    assert done.returncode == 0, done.stderr
    assert "does not name: alpha\n" in done.stdout
    assert checkout.version_of("beta") == "2"
    assert "alpha" not in checkout.pip("list", "--format=freeze")


def test_set_up_continues_after_an_interrupt_while_pip_is_installed(tmp_path: Path) -> None:
    """As Ctrl-C does, the signal reaches make and all that it has started."""
    checkout = make_checkout(tmp_path)
    with checkout.start_setup() as started:
        deadline = time.monotonic() + 60
        while not [*checkout.root.glob(".venv/lib/*/site-packages/pip/_internal")]:
            assert started.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.killpg(started.pid, signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert "Set-up was interrupted; make setup continues it." in said
    done = checkout.make_setup()
    assert done.returncode == 0, done.stderr
    assert checkout.version_of("alpha") == "1"
