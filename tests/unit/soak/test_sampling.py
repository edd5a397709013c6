import os
import subprocess
import sys

from tests.soak.sampling import family


def test_a_family_has_the_children_of_children() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1); input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        found = family(os.getpid())
        assert found[0] == os.getpid()
        assert len(family(program.pid)) == 2
        assert set(family(program.pid)) < set(found)
        program.communicate(b"\n")
