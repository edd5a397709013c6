import os
import signal
import subprocess
import sys

from click.testing import CliRunner

from tests.realtime_server.__main__ import main


def test_serves_until_a_signal() -> None:
    command = [sys.executable, "-m", "tests.realtime_server", "--script", '{"pace": 1.0}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ws://127.0.0.1:")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_bad_script() -> None:
    for script in ("{", '{"speed": 1}'):
        result = CliRunner().invoke(main, ["--script", script])
        assert result.exit_code == 2
        assert "--script" in result.output
