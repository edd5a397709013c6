"""Command the fault hop from a test."""

import contextlib
import dataclasses
import json
import socket
import time
from pathlib import Path
from typing import Any

from relayctl.wire.address import Address, render
from tests.lab.impairment import Rule
from tests.lab.node import Node
from tests.lab.program import Program

_START_S = 5.0


class HopError(RuntimeError):
    """The hop did not obey."""


class HopControl:
    def __init__(self, program: Program, connection: socket.socket) -> None:
        self.program = program
        self._connection = connection
        self._answers = connection.makefile("r")

    @classmethod
    def start(cls, node: Node, directory: Path, seed: int, *, nat: bool = True) -> "HopControl":
        """Start the hop inside `node` and wait until it passes frames."""
        control = directory / "hop.sock"
        arguments = ["--control", str(control), "--seed", str(seed), *([] if nat else ["--line"])]
        program = node.python("hop", "tests.lab.hop", *arguments)
        return cls(program, _connect(program, control))

    def set_rules(self, *rules: Rule) -> None:
        """Replace all rules; counts for `nth` begin again."""
        fields = [dataclasses.asdict(rule) | {"kinds": sorted(rule.kinds)} for rule in rules]
        self._ask({"op": "rules", "rules": fields})

    def clear(self) -> None:
        """Pass everything on at once."""
        self.set_rules()

    def move(self, client: Address | None = None) -> int:
        """Change the NAT mapping of `client`, or of all; how many moved."""
        moved: int = self._ask({"op": "move", "client": render(client) if client else None})[
            "moved"
        ]
        return moved

    def counters(self, *, reset: bool = False) -> dict[str, Any]:
        """`{"up": {kind: {"seen", "sent", "dropped", "unmapped"}}, "down": …, "rtp_gap_ms": …}`.

        The gap is the longest time between two RTP packets that went on in that direction; the
        time since the last one counts too, and a gap that lasts outlives `reset`.
        """
        return self._ask({"op": "counters", "reset": reset})

    def count(self, direction: str, kind: str, what: str = "sent") -> int:
        """One of the counters."""
        number: int = self.counters()[direction].get(kind, {}).get(what, 0)
        return number

    def close(self) -> None:
        self._answers.close()
        self._connection.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        line = self._answers.readline()
        if not line:
            raise HopError(f"the hop has ended\n{self.program.tail()}")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise HopError(answer["error"])
        return answer


def _connect(program: Program, control: Path) -> socket.socket:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        program.expect_running()
        connection = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            connection.connect(str(control))
            return connection
        connection.close()
        time.sleep(0.02)
    raise HopError(f"no control socket after {_START_S} s\n{program.tail()}")
