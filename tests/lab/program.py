"""Programs of a lab: started with a log file and a place in the pid list, ended by pid.

The pid list outlives a crash of whoever started them, so that the next start can clear up. A pid
stands there with its start time and is never signalled if another process has it by now.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_TAIL = 20  # lines of a log that an error quotes


class ProgramError(RuntimeError):
    """A program ended, or did not do what it should; the message has the end of its log."""


class Program:
    """A running program. `log` has its standard output and error."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.stop(signal.SIGKILL)

    def stop(self, by: signal.Signals = signal.SIGTERM, patience_s: float = 5.0) -> int:
        """Signal it, wait, kill what is left after `patience_s`; its exit status."""
        if self.running:
            self.process.send_signal(by)
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        status = self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def descriptors(self) -> int:
        """How many file descriptors it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def sockets(self, table: str = "udp") -> int:
        """How many sockets of /proc/net/`table` it holds."""
        lines = Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]
        inodes = {f"socket:[{line.split()[9]}]" for line in lines}
        return sum(link in inodes for link in _links(self.pid))

    def cpu_s(self) -> float:
        """User and system time so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def tail(self) -> str:
        return tail(self.log)

    def expect_running(self) -> None:
        """Raises `ProgramError` if it has ended."""
        status = self.process.poll()
        if status is not None:
            raise ProgramError(f"{self.name} ended with status {status}\n{self.tail()}")


class Programs:
    """Starts programs; knows every one it started, in `directory`/pids too."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._started: list[Program] = []

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        piped: bool = False,
    ) -> Program:
        """`piped` gives the program a stdin and a stdout to talk to; its log gets stderr alone."""
        log = self.directory / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else output,
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environ or {})},
                pass_fds=pass_fds,
                start_new_session=True,  # Ctrl-C goes to whoever started us, and it stops us
            )
        with (self.directory / "pids").open("a") as pids:
            pids.write(f"{process.pid} {start_time(process.pid)}\n")
        program = Program(name, process, log)
        self._started.append(program)
        return program

    def stop_all(self) -> None:
        """In reverse order of their start."""
        while self._started:
            self._started.pop().stop()
        (self.directory / "pids").unlink(missing_ok=True)


def stop_listed(directory: Path, patience_s: float = 5.0) -> int:
    """End what the pid list in `directory` says still runs; how many that were."""
    pids = directory / "pids"
    listed = [line.split() for line in pids.read_text().splitlines()] if pids.exists() else []
    alive = [int(pid) for pid, start in listed if start_time(int(pid)) == start]
    for pid in reversed(alive):
        _end(pid, patience_s)
    pids.unlink(missing_ok=True)
    return len(alive)


def tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_TAIL:]
    return "\n".join([f"--- end of {log}", *lines])


def _end(pid: int, patience_s: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        while start_time(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        if start_time(pid):
            os.kill(pid, signal.SIGKILL)


def start_time(pid: int) -> str:
    """Ticks since boot, as text; empty when there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _links(pid: int) -> list[str]:
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return links
