"""The program of the page on Slack, with a local server in Slack's place."""

import json
import os
import queue
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.e2e.project import ROOT, Project, request

from .conftest import PROJECT

pytestmark = pytest.mark.slow(seconds=20)
PAGE = ROOT / "docs" / "how-to" / "notify-slack.md"


def test_the_end_of_a_run_is_posted_again_until_the_channel_takes_it(tmp_path: Path, stack: Project) -> None:
    lines: queue.Queue[str] = queue.Queue()
    posted = list[str]()

    class Channel(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
            status = 200 if posted else 500
            posted.append(text)
            self.send_response(status)
            self.end_headers()
            lines.put(f"{status} {text}")

    program = tmp_path / "notify.py"
    program.write_text(PAGE.read_text().partition("```python\n")[2].partition("```")[0])
    with HTTPServer(("127.0.0.1", 0), Channel) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        environment = {**os.environ, **stack.env, "SLACK_WEBHOOK_URL": url}
        with subprocess.Popen(
            [sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, text=True
        ) as notifier:
            try:
                assert notifier.stdout is not None
                assert "Posting the notices of" in notifier.stdout.readline()
                stack.drop("requests/notified.yaml", request(PROJECT))
                run_id = stack.final_status("requests/notified.yaml")["run_id"]
                while not (line := lines.get(timeout=60)).startswith("200") or run_id not in line:
                    pass
            finally:
                notifier.terminate()
                server.shutdown()
    assert line.startswith(f"200 run.succeeded: {run_id} line\ngs://")
