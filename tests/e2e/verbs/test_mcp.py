"""An agent played by a script: the official client of the protocol starts `trainmaster mcp` on a running stack."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.e2e.project import Project, eventually, request
from trainmaster.cli.stack.process import command_line

from .conftest import PROJECT, Trainmaster

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(600)]
EXPERIMENTS, KILLED_AT, AT_ONCE = 50, 20, 8
SESSION = "fifty"
WORDS = ("--session", SESSION, "--label", "agent=script", "--budget-usd")
TIMES: Mapping[str, Any] = {"scheduling": {"timeout_s": 3600}}


class Agent:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.runs: dict[int, str] = {}

    async def ask(self, name: str, /, **arguments: object) -> tuple[Any, str]:
        result = await self._client.call_tool(name, arguments)
        (content,) = result.content
        assert content.type == "text"
        return (None, content.text) if result.is_error else (json.loads(content.text), "")

    async def submit(self, text: str) -> tuple[Any, str]:
        planned, _ = await self.ask("plan", text=text)
        if "refusal" in planned:
            return None, planned["refusal"]
        return await self.ask("submit", text=text, token=planned["token"])

    async def experiment(self, number: int, limiter: anyio.CapacityLimiter, refusals: list[str]) -> None:
        text = request(PROJECT, f"--rate=0.{number:03}", "--epochs=1", **TIMES)
        async with limiter:
            while True:
                started, why = await self.submit(text)
                if started:
                    self.runs[number] = started["data"][0]["run_id"]
                    return
                assert "0.25 USD, and of 2.0 USD " in why, why
                refusals.append(why)
                await self.ask("wait", run_id=[*self.runs.values()][-1], timeout_s=10)

    async def experiments(self, numbers: range, refusals: list[str]) -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as group:
            for number in numbers:
                group.start_soon(self.experiment, number, limiter, refusals)


@asynccontextmanager
async def agent(trainmaster: Trainmaster, *words: str) -> AsyncIterator[Agent]:
    command, *more = command_line("mcp", "--context", f"local:{trainmaster.folder / '.trainmaster'}", *words)
    server = StdioServerParameters(
        command=command, args=more, env=dict(trainmaster.environment), cwd=trainmaster.folder
    )
    async with Client(stdio_client(server)) as client:
        yield Agent(client)


def own_records(stack: Project) -> dict[str, Mapping[str, Any]]:
    return {
        run_id: record
        for run_id, record in stack.records().items()
        if f", session={SESSION}" in record["source"].get("sent_by", {}).get("name", "")
    }


def kill_server(stack: Project) -> None:
    eventually(lambda: len(own_records(stack)) > KILLED_AT, "a run whose submission has no answer yet")
    (server,) = (each for each in psutil.Process().children() if "mcp" in each.cmdline())
    server.kill()


def counted_at(moment: str, records: Mapping[str, Mapping[str, Any]]) -> Decimal:
    """What the runs had cost that had ended then, and the others could cost."""
    ended = [each for each in records.values() if each["history"][-1]["at"] < moment]
    begun = [each for each in records.values() if each["history"][0]["at"] <= moment and each not in ended]
    costs = [each["completion"]["cost"]["total"] for each in ended]
    return sum(
        map(Decimal, [*costs, *(each["request"]["estimate"]["at_most"] for each in begun)]), Decimal(0)
    )


def test_fifty_experiments_stay_within_a_budget_and_a_killed_server_starts_none_twice(
    trainmaster: Trainmaster, stack: Project
) -> None:
    refusals: list[str] = []

    async def play() -> dict[int, str]:
        known: dict[int, str] = {}
        with suppress(MCPError, ExceptionGroup):  # the server's end, and that of each call to it
            async with agent(trainmaster, *WORDS, "2") as killed, anyio.create_task_group() as group:
                await killed.experiments(range(KILLED_AT), refusals)
                known = dict(killed.runs)
                group.start_soon(anyio.to_thread.run_sync, partial(kill_server, stack))
                await killed.experiments(range(KILLED_AT, EXPERIMENTS), refusals)
        assert len(killed.runs) < EXPERIMENTS
        async with agent(trainmaster, *WORDS, "2") as again:
            await again.experiments(range(EXPERIMENTS), refusals)
            assert known.items() <= again.runs.items()
            for run_id in again.runs.values():
                while "state" not in (ended := (await again.ask("wait", run_id=run_id))[0]["data"]):
                    pass
                assert ended["state"] == "succeeded"
        async with agent(trainmaster, *WORDS, "0.001") as poor:
            started, why = await poor.submit(request(PROJECT, "--rate=0.9", **TIMES))
            assert (started, why[:35]) == (None, "Over the budget: this may cost up t")
        return again.runs

    runs = anyio.run(play)
    records = own_records(stack)
    assert set(runs.values()) == records.keys()
    assert refusals
    assert max(counted_at(each["history"][0]["at"], records) for each in records.values()) <= 2
    marks = [each["request"]["document"]["labels"] for each in records.values()]
    assert marks == [{"agent": "script", "session": SESSION}] * EXPERIMENTS


def test_a_change_takes_two_calls_and_shows_who_made_it(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any]
) -> None:
    async def play() -> str:
        async with agent(trainmaster, "--label", "agent=script") as script:
            text = request(PROJECT, "--wait-for=gs://nowhere/nothing", **TIMES)
            first, _ = await script.submit(text)
            second, _ = await script.submit(text)
            assert (first["data"], second["notes"][:14]) == (second["data"], "Started before")
            run_id: str = first["data"][0]["run_id"]
            await anyio.to_thread.run_sync(
                lambda: stack.eventually(lambda: stack.record(run_id)["state"] == "running", "it runs")
            )
            effects, _ = await script.ask("cancel", run_id=run_id)
            assert effects["data"]["question"] == f"Cancel the run {run_id}?"
            assert stack.record(run_id)["state"] == "running"
            await script.ask("cancel", run_id=run_id, token=effects["token"])
            ended, _ = await script.ask("wait", run_id=run_id, timeout_s=60)
            assert ended["data"]["state"] == "cancelled"
            for verb in ("status", "why"):
                answer, _ = await script.ask(verb, run_id=trained["run_id"])
                assert answer["data"] == json.loads(trainmaster(verb, trained["run_id"], "-o", "json").out)
        return run_id

    by = stack.record(anyio.run(play))["cancel_requested_by"]
    assert ", agent=script, session=mcp-" in by["name"]
