"""Starts of a transceiver or of signaling that cannot go well: one clear message, nothing left."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.lab.node import REPOSITORY, Node
from tests.lab.site import in_lab
from tests.lab.starting import NOBODY, Done, Starter, listening, open_directory, processes_in, run
from tests.lab.topology import Lab

FAILED = 1


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix) as lab:
        yield lab


@pytest.fixture
def starter(lab: Lab) -> Iterator[Starter]:
    with open_directory() as directory:
        yield Starter(in_lab(lab), directory)


def expect_failure(node: Node, done: Done, message: str) -> None:
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert done.returncode == FAILED
    assert processes_in(node) == []


@pytest.mark.parametrize(
    ("kind", "name"), [(socket.SOCK_DGRAM, "UDP"), (socket.SOCK_STREAM, "TCP")]
)
def test_a_transceiver_whose_port_another_process_has(
    starter: Starter, kind: int, name: str
) -> None:
    site = starter.site
    with listening(site.transceiver, kind, site.endpoint):
        done = run(site.transceiver, starter.transceiver())
    said = rf"listen = '10\.2\.0\.2:5000': {name}: another process has it; `ss "
    expect_failure(site.transceiver, done, said)
    for each in (socket.SOCK_DGRAM, socket.SOCK_STREAM):  # both are free again
        listening(site.transceiver, each, site.endpoint).close()


def test_a_transceiver_on_an_address_that_is_not_there(starter: Starter) -> None:
    done = run(starter.site.transceiver, starter.transceiver(listen="'10.2.0.99:5000'"))
    expect_failure(starter.site.transceiver, done, "UDP|TCP: this host has no such address")


def test_a_transceiver_on_a_low_port_without_privileges(starter: Starter) -> None:
    starter.site.transceiver.sysctl({"net.ipv4.ip_unprivileged_port_start": "1024"})
    command = starter.transceiver(listen="'10.2.0.2:500'")
    done = run(starter.site.transceiver, command, user=NOBODY)
    expect_failure(starter.site.transceiver, done, "need CAP_NET_BIND_SERVICE; choose a higher")


@pytest.mark.parametrize("service", ["transceiver", "signaling"])
def test_a_service_that_may_not_read_the_keys(starter: Starter, service: str) -> None:
    starter.keys.chmod(0o600)
    command = getattr(starter, service)()
    node = getattr(starter.site, service)
    done = run(node, command, user=NOBODY)
    expect_failure(node, done, f"keys_file = '{starter.keys}': Permission denied; let .* read it")


def test_a_transceiver_without_its_key(starter: Starter) -> None:
    done = run(starter.site.transceiver, starter.transceiver(mint="3"))
    expect_failure(starter.site.transceiver, done, "mint = 3: the key file has 1; choose")


def test_a_transceiver_that_anybody_could_use(starter: Starter) -> None:
    done = run(starter.site.transceiver, starter.transceiver(control_token=""))
    assert re.search("control_token: missing; .*could make calls", done.stderr), done.stderr
    assert done.returncode == 2


def test_signaling_whose_port_another_process_has(starter: Starter) -> None:
    site = starter.site
    with listening(site.signaling, socket.SOCK_STREAM, site.signaling_address):
        done = run(site.signaling, starter.signaling())
    expect_failure(site.signaling, done, r"listen = '10\.4\.0\.2:8080': another program has it; ch")


def test_signaling_on_an_address_that_is_not_there(starter: Starter) -> None:
    done = run(starter.site.signaling, starter.signaling(listen="'10.4.0.99:8080'"))
    expect_failure(starter.site.signaling, done, "this host has no such address")


@pytest.mark.parametrize(
    ("fd", "said"),
    [
        ("fd:77", "listen = 'fd:77': Bad file descriptor; pass a socket"),
        ("fd:0", "listen = 'fd:0': .* pass a socket"),
    ],
)
def test_signaling_with_a_descriptor_that_is_no_socket(
    starter: Starter, fd: str, said: str
) -> None:
    done = run(starter.site.signaling, starter.signaling(listen=f"'{fd}'"))
    expect_failure(starter.site.signaling, done, said)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_signaling_with_a_socket_that_does_not_listen(starter: Starter, kind: int) -> None:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        command = starter.signaling(listen=f"'fd:{sock.fileno()}'")
        done = subprocess.run(
            command,
            cwd=REPOSITORY,
            pass_fds=[sock.fileno()],
            capture_output=True,
            text=True,
            timeout=20,
        )
    said = r"listen = 'fd:\d+': the socket does not listen"
    expect_failure(starter.site.signaling, done, said)


def test_signaling_with_a_directory_as_descriptor(starter: Starter) -> None:
    code = (
        "import os, sys; os.dup2(os.open('/', os.O_RDONLY), 9, inheritable=True);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = starter.signaling(listen="'fd:9'")
    done = run(starter.site.signaling, [sys.executable, "-c", code, *command])
    expect_failure(starter.site.signaling, done, "listen = 'fd:9': .*; pass a socket")
