"""Drive a lean client in another process, usually in another namespace."""

import json
from collections.abc import Sequence
from typing import Any

from tests.lab.node import Node
from tests.lab.program import Program, ProgramError


class LeanDriver:
    """`first` is the report after set-up. A context manager: leaving it hangs up."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.first = self._read()

    @classmethod
    def start(cls, node: Node, url: str, host: str, *options: str) -> "LeanDriver":
        """Set calls up and wait until they talk. `options` as on the command line."""
        arguments = ["tests.clients.lean", "--url", url, "--host", host, *options]
        return cls(node.python("lean", *arguments, piped=True))

    def __enter__(self) -> "LeanDriver":
        return self

    def __exit__(self, *_: object) -> None:
        if self.program.running:
            self.stop()

    def report(self) -> dict[str, Any]:
        return self.ask("report")

    def stop(self) -> dict[str, Any]:
        """Hang up; the final report."""
        report = self.ask("stop")
        self.program.stop()
        return report

    def ask(self, op: str, calls: Sequence[int] | None = None, **more: Any) -> dict[str, Any]:
        """One command; see `tests.clients.lean`."""
        request = {"op": op, **more} | ({} if calls is None else {"calls": list(calls)})
        assert self.program.process.stdin is not None
        self.program.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.program.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.program.process.stdout is not None
        line = self.program.process.stdout.readline()
        if not line:
            self.program.process.wait()
            raise ProgramError(f"the lean client has ended\n{self.program.tail()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProgramError(f"the lean client says: {answer['error']}")
        return answer
