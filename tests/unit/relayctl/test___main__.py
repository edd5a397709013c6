import os
import subprocess
import sys

import pytest


def run(*arguments: str, stdout: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "relayctl", *arguments]
    return subprocess.run(command, check=False, text=True, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], 0), (["token", "open", "x"], 2), (["fly"], 2)]
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    found = run(*arguments, stdout=subprocess.DEVNULL)
    assert found.returncode == code
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["completion", "bash"]])
def test_a_closed_pipe_is_no_crash(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        found = run(*arguments, stdout=writing)
    finally:
        os.close(writing)
    assert found.stderr == ""


TABLE = """
from relayctl.cli import render
column = render.Column("NAME", lambda record: record["name"])
render.table([column], [{"name": "x" * 100}] * 5000)
"""


def test_a_table_into_a_closed_pipe_is_no_crash() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", TABLE]
    try:
        found = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert found.stderr == b""
