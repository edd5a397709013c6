"""Drive an aiortc client in another process, usually in another namespace."""

import json
from typing import Any

from tests.lab.node import Node
from tests.lab.program import Program, ProgramError


class AiortcDriver:
    """Talks from `start` to `stop`. A context manager: leaving it ends the client."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._read()  # that it talks

    @classmethod
    def start(cls, node: Node, url: str, *options: str) -> "AiortcDriver":
        """Set a call up and wait until both sides talk. Raises `ProgramError`."""
        arguments = ["tests.clients.aiortc_client", "--url", url, *options]
        return cls(node.python("aiortc", *arguments, piped=True))

    def __enter__(self) -> "AiortcDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()

    def stop(self) -> dict[str, Any]:
        """Hang up; the client's report. Raises `ProgramError`."""
        assert self.program.process.stdin is not None
        self.program.process.stdin.close()
        report = self._read()
        self.program.process.wait()
        return report

    def _read(self) -> dict[str, Any]:
        assert self.program.process.stdout is not None
        line = self.program.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it has ended"}
        if "error" in answer:
            self.program.process.wait()
            raise ProgramError(f"aiortc client: {answer['error']}\n{self.program.tail()}")
        return answer
