"""What `make up` left running: read and written as one small file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab.node import REPOSITORY
from tests.lab.program import Program, start_time

PATH = REPOSITORY / "build" / "up" / "state.json"


@dataclass(frozen=True)
class UpState:
    datapath: str
    urls: list[str]
    logs: str
    programs: dict[str, tuple[int, str]]  # name: pid, start time

    @classmethod
    def of(
        cls, datapath: str, urls: list[str], logs: Path, programs: Mapping[str, Program]
    ) -> "UpState":
        alive = {name: (p.pid, start_time(p.pid)) for name, p in programs.items()}
        return cls(datapath, urls, str(logs.relative_to(REPOSITORY)), alive)

    def ended(self) -> list[str]:
        """Names of the programs that run no more."""
        return [name for name, (pid, start) in self.programs.items() if start_time(pid) != start]

    def save(self, path: Path = PATH) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")


def load(path: Path = PATH) -> UpState | None:
    """None if nothing was left, or nothing legible."""
    try:
        fields = json.loads(path.read_text())
        programs = {
            name: (int(pid), str(start)) for name, (pid, start) in fields.pop("programs").items()
        }
        return UpState(**fields, programs=programs)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
