import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.program import Program, ProgramError, Programs, start_time, stop_listed

UDP_SOCKETS = """
import socket, time
kept = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for n, sock in enumerate(kept): sock.bind(("127.0.0.1", 0))
print("ready", flush=True)
time.sleep(60)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.stop_all()


def started(programs: Programs, code: str) -> Program:
    program = programs.start("sample", [sys.executable, "-c", code])
    deadline = time.monotonic() + 5
    while "ready" not in program.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    return program


def test_an_end_is_told_with_the_log(programs: Programs) -> None:
    program = programs.start("sample", [sys.executable, "-c", "print('what went wrong'); exit(3)"])
    program.process.wait(5)
    with pytest.raises(ProgramError, match=r"(?s)sample ended with status 3.*what went wrong"):
        program.expect_running()


def test_looks_into_a_process(programs: Programs) -> None:
    program = started(programs, UDP_SOCKETS)
    assert program.sockets() == 3
    assert program.descriptors() == 6
    assert program.cpu_s() < 5


def test_stops_even_the_stubborn(programs: Programs) -> None:
    program = started(programs, STUBBORN)
    assert program.stop(patience_s=0.2) == -9
    assert not program.running


def test_listed_programs_end_from_another_process(programs: Programs) -> None:
    program = started(programs, STUBBORN)
    assert stop_listed(programs.directory, patience_s=0.2) == 1
    assert program.process.wait(2) == -9
    assert stop_listed(programs.directory) == 0


def test_a_pid_that_somebody_else_has_by_now_is_left_alone(programs: Programs) -> None:
    program = started(programs, UDP_SOCKETS)
    (programs.directory / "pids").write_text(f"{program.pid} {int(start_time(program.pid)) - 1}\n")
    assert stop_listed(programs.directory) == 0
    assert program.running


def test_talks_over_pipes(programs: Programs) -> None:
    program = programs.start("cat", ["cat"], piped=True)
    assert program.process.stdin is not None
    assert program.process.stdout is not None
    program.process.stdin.write(b"hello\n")
    program.process.stdin.flush()
    assert program.process.stdout.readline() == b"hello\n"
