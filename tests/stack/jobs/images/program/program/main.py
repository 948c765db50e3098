"""A stand-in for a trainer: does what its arguments say, in order, with nothing but the standard library.

`verb=argument`, or `verb=argument@replica` for that replica alone.
"""

import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path


def show(text: str) -> None:
    """One line of standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def tell(_argument: str) -> None:
    """One JSON line with everything a replica can see of its place."""
    seen = {"argv": sys.argv[1:], "cwd": str(Path.cwd()), "environ": dict(os.environ)}
    show(json.dumps({"severity": "NOTICE", "message": "told", "event": "told", **seen}))


def role() -> str:
    task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
    return f"{task['type']}-{task['index']}"


def bucket_path(name: str) -> Path:
    return Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")) / name


def write(name: str) -> None:
    path = bucket_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(role())


def wait(name: str) -> None:
    while not bucket_path(name).exists():
        time.sleep(0.01)


def die_once(argument: str) -> None:
    number, _, mark = argument.partition(",")
    if not bucket_path(mark).exists():
        write(mark)
        os.kill(os.getpid(), int(number))


def hold(name: str) -> None:
    """A file that is locked until this process ends; it appears when it is locked."""
    path = bucket_path(name)
    descriptor = os.open(path.with_suffix(".tmp"), os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    path.with_suffix(".tmp").rename(path)


def once(name: str) -> bool:
    """Whether this is the first start; leaves a mark."""
    first = not bucket_path(name).exists()
    write(name)
    return first


def goodbye(*_: object) -> None:
    show("told to end")
    sys.exit(0)


def exit_after_death(argument: str) -> None:
    """As a peer that sees another one vanish: exits the moment it is gone; does nothing in its second life."""
    status, _, name = argument.partition(",")
    if bucket_path(name + ".mourned").exists():
        return
    wait(name)
    write(name + ".mourned")
    fcntl.flock(os.open(bucket_path(name), os.O_RDWR), fcntl.LOCK_EX)
    sys.exit(int(status))


def burn(seconds: str) -> None:
    """Keep one core busy."""
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        pass


VERBS: dict[str, Callable[[str], object]] = {
    "tell": tell,
    "print": show,
    "complain": complain,
    "many": lambda count: show("\n".join(f"line {i}" for i in range(int(count)))),
    "write": write,
    "show": lambda path: show(Path(path).read_text().strip()),
    "wait": wait,
    "exit": lambda status: sys.exit(int(status)),
    "die_once": die_once,
    "burn": burn,
    "sleep_once": lambda name: time.sleep(600) if once(name) else None,
    "hold": hold,
    "exit_after_death": exit_after_death,
    "deaf": lambda _argument: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "polite": lambda _argument: signal.signal(signal.SIGTERM, goodbye),
    "sleep": lambda seconds: time.sleep(float(seconds)),
}


def main() -> None:
    for word in sys.argv[1:]:
        verb, _, argument = word.partition("=")
        only = ""
        if "@" in argument:
            argument, _, only = argument.rpartition("@")
        if only in {"", role()}:
            VERBS[verb](argument)


if __name__ == "__main__":
    main()
