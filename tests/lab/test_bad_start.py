"""Starts of a relay that cannot go well: refused with the mend, and nothing is left over.

Last the ones beside a relay that runs: it does not notice.
"""

import os
import re
import socket
import time
from collections.abc import Iterator

import pytest

from relayctl.datapath.libbpf import DRIVER_MODE, Link, Program, library
from tests.lab import http, starting
from tests.lab.program import Program as Running
from tests.lab.site import in_lab
from tests.lab.starting import NOBODY, Done, Starter, listening, open_directory, program_on, run
from tests.lab.topology import BPFFS, Lab

FAILED = 1
USAGE = 2
MODES = {"native": "xdpdrv", "generic": "xdpgeneric"}  # as ip(8) calls them
PASS_ALL = bytes.fromhex("b700000002000000 9500000000000000")  # r0 = XDP_PASS; exit


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix) as lab:
        yield lab


@pytest.fixture
def starter(lab: Lab) -> Iterator[Starter]:
    with open_directory() as directory:
        yield Starter(in_lab(lab), directory)


def expect_failure(starter: Starter, done: Done, message: str, code: int = FAILED) -> None:
    """One clear message, and no trace of the attempt."""
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert done.returncode == code
    assert starter.left_over() == {}
    assert not starter.pins.exists()


def test_without_privileges(starter: Starter) -> None:
    starter.directory.chmod(0o777)
    done = run(starter.site.relay, starter.relay(), user=NOBODY)
    expect_failure(starter, done, "cannot make /sys/fs/bpf/.*: Permission denied; run as root")


def test_without_a_place_for_its_lock(starter: Starter) -> None:
    done = run(starter.site.relay, starter.relay(), user=NOBODY)
    expect_failure(starter, done, "run_dir = '.*': Permission denied; create it, or set another")


KEY_FILES = {
    "missing": (None, "No such file or directory; make one with `relayctl token keygen`"),
    "malformed": (b"1 abc\n", "line 1: the secret has to be 64 hex digits"),
    "binary": (b"\xff\xfe\x00", "is no text; make a key file"),
    "empty": (b"# nothing\n", "no key in it: make one"),
    "twice": (b"1 " + b"ab" * 32 + b"\n1 " + b"cd" * 32 + b"\n", "line 2: key id 1 stands twice"),
}


@pytest.mark.parametrize("name", KEY_FILES)
def test_without_good_keys(starter: Starter, name: str) -> None:
    content, message = KEY_FILES[name]
    starter.keys.unlink()
    if content is not None:
        starter.keys.write_bytes(content)
    done = run(starter.site.relay, starter.relay())
    expect_failure(starter, done, f"keys_file = '{starter.keys}': {message}", USAGE)
    assert "abab" not in done.stderr


def test_with_keys_it_may_not_read(starter: Starter) -> None:
    starter.directory.chmod(0o777)
    starter.keys.chmod(0o600)
    done = run(starter.site.relay, starter.relay(datapath="'socket'"), user=NOBODY)
    said = f"keys_file = '{starter.keys}': Permission denied; .*read"
    expect_failure(starter, done, said, USAGE)


def test_with_an_interface_that_is_not_there(starter: Starter) -> None:
    done = run(starter.site.relay, starter.relay(name="'outer9'"))
    expect_failure(starter, done, r"interface\.name = 'outer9': there is none; `ip link` lists")


def test_with_a_vip_that_is_not_there(starter: Starter) -> None:
    changes = {"public": "'203.0.113.77:3478'", "local": "'203.0.113.77:3478'"}
    done = run(starter.site.relay, starter.relay(**changes))
    expect_failure(starter, done, r"cannot bind 203\.0\.113\.77:3478: .*`ip address add")


@pytest.mark.parametrize("where", ["vip", "inner"])
def test_with_a_port_that_another_process_has(starter: Starter, where: str) -> None:
    site = starter.site
    address = site.vip if where == "vip" else (site.relay_inner, 5107)
    with listening(site.relay, socket.SOCK_DGRAM, address):
        done = run(site.relay, starter.relay())
    expect_failure(
        starter, done, rf"cannot bind .*:{address[1]}: another process has it; `ss -lunp"
    )


def test_with_an_admin_port_that_another_process_has(starter: Starter) -> None:
    site = starter.site
    with listening(site.relay, socket.SOCK_STREAM, site.relay_admin):
        done = run(site.relay, starter.relay())
    expect_failure(starter, done, r"admin = '10\.2\.0\.1:9100': Address already in use.*; choose")


@pytest.mark.parametrize("where", ["/tmp", "/nonexistent"])
def test_without_a_bpf_file_system(starter: Starter, where: str) -> None:
    done = run(starter.site.relay, starter.relay(bpffs=f"'{where}'"))
    expect_failure(starter, done, f"{where} is no BPF file system: mount -t bpf bpf {where}")


def test_where_the_bpf_file_system_is_hidden(starter: Starter) -> None:
    """`ip netns exec` mounts a /sys of its own; a BPF file system mounted there would go with it,
    and the pins too."""
    namespace = starter.site.relay.namespace
    assert namespace is not None
    done = run(starter.site.host, ["ip", "netns", "exec", namespace, *starter.relay()])
    expect_failure(starter, done, "is no BPF file system: .*`ip netns exec` hides")


@pytest.mark.parametrize(
    ("where", "how"), [("outer0", "link"), ("inner0", "native"), ("inner0", "generic")]
)
def test_with_somebody_elses_program(starter: Starter, where: str, how: str) -> None:
    """On the second interface too: the first one must be let go again."""
    relay = starter.site.relay
    program, link = attach_foreign(starter, where, how)
    try:
        done = run(relay, starter.relay())
        said = rf"{where} carries another XDP program: id {program}, 'someone_else'"
        mend = f", held by BPF link {link.id}; stop" if link else "; if nobody needs it: ip link"
        assert re.search(said + mend, done.stderr), done.stderr
        assert "Warning" not in done.stderr
        assert done.returncode == FAILED
        assert starter.left_over() == {"programs": [where]}
        assert program_on(relay, where) == program
        assert not starter.pins.exists()
        if link is None:
            relay.run(done.stderr.partition("needs it: ")[2].split())
        else:
            link.close()
        assert program_on(relay, where) == 0
    finally:  # of a test that failed before that
        if link is not None:
            link.close()
        elif program_on(relay, where):
            relay.run(["ip", "link", "set", "dev", where, MODES[how], "off"])


def attach_foreign(starter: Starter, where: str, how: str) -> tuple[int, Link | None]:
    """A program of somebody else on an interface: its id, and the link that holds it, if any."""
    relay, pin = starter.site.relay, BPFFS / f"{starter.site.instance}-foreign"
    fd = library().bpf_prog_load(6, b"someone_else", b"GPL", PASS_ALL, 2, None)
    assert fd >= 0
    with Program(fd) as program:
        if how == "link":
            index = relay.call(lambda: socket.if_nametoindex(where))
            link = relay.call(lambda: Link.attach_xdp(program, index, DRIVER_MODE))
            return program.id, link
        program.pin(pin)
        try:
            relay.run(["ip", "link", "set", "dev", where, MODES[how], "pinned", str(pin)])
        finally:
            pin.unlink()
        return program.id, None


def test_a_mended_configuration_starts_after_a_failure(starter: Starter) -> None:
    """What the failed start had made is not in its way."""
    wrong = {"public": "'203.0.113.77:3478'", "local": "'203.0.113.77:3478'", "max_flows": "4096"}
    assert run(starter.site.relay, starter.relay(**wrong)).returncode == FAILED
    program = start(starter, starter.relay())
    stop(starter, program)


@pytest.fixture
def running(starter: Starter) -> Iterator[Running]:
    program = start(starter, starter.relay())
    yield program
    stop(starter, program)


def start(starter: Starter, command: list[str]) -> Running:
    """Start a relay and wait until it is ready."""
    program = starter.site.relay.popen("relay", command)
    deadline = time.monotonic() + starting.PATIENCE_S
    while time.monotonic() < deadline and not is_ready(starter):
        program.expect_running()
        time.sleep(0.1)
    assert is_ready(starter)
    return program


def is_ready(starter: Starter) -> bool:
    site = starter.site
    try:
        return http.request(site.relay, f"{site.admin_url}/readyz").status == 200
    except OSError:
        return False


def stop(starter: Starter, program: Running) -> None:
    """Stop it and take its program off."""
    assert program.stop() == 0
    unload = starter.relay()
    unload[3:4] = ["unload", "--yes"]
    done = run(starter.site.relay, unload)
    assert done.returncode == 0, done.stderr
    assert starter.left_over() == {}
    assert not starter.pins.exists()


def test_a_second_daemon(starter: Starter, running: Running) -> None:
    before = starter.left_over()
    done = run(starter.site.relay, starter.relay())
    said = f"is already served by process {running.pid} .*; stop it, or choose another instance"
    assert re.search(said, done.stderr), done.stderr
    assert done.returncode == FAILED
    assert starter.left_over() == before
    assert running.running
    assert is_ready(starter)


def test_a_second_instance_on_the_same_addresses(starter: Starter, running: Running) -> None:
    before = starter.left_over()
    other = f"{starter.site.instance}-2"
    command = starter.relay(instance=f"'{other}'", admin="'10.2.0.1:9101'")
    done = run(starter.site.relay, command)
    assert "another process has it" in done.stderr
    assert done.returncode == FAILED
    assert starter.left_over() == before
    assert not starter.pins.with_name(other).exists()
    assert is_ready(starter)


def test_pins_of_another_configuration(starter: Starter, running: Running) -> None:
    """A daemon died, and the next one is told otherwise: the kernel's part carries on."""
    running.kill()
    attached = starter.left_over()["attached"]
    done = run(starter.site.relay, starter.relay(inner_ports="8"))
    said = r"inner: pinned \['10\.2\.0\.1', 5100, 16\], .*; give the old value"
    assert re.search(f"{said}.*rm -r {starter.pins}", done.stderr), done.stderr
    assert done.returncode == FAILED
    assert starter.left_over()["attached"] == attached
    again = start(starter, starter.relay())
    assert again.stop() == 0
    restarted = start(starter, starter.relay())  # for the fixture to stop
    running.process = restarted.process


def test_a_table_of_another_size_takes_the_flows_over(starter: Starter, running: Running) -> None:
    running.kill()
    attached = starter.left_over()["attached"]
    resized = start(starter, starter.relay(max_flows="1024"))
    assert starter.left_over()["attached"] == attached
    running.process = resized.process  # for the fixture to stop


def test_somebody_without_privileges_beside_the_pins(starter: Starter, running: Running) -> None:
    running.kill()
    starter.directory.chmod(0o777)
    starter.lock.chmod(0o666)
    done = run(starter.site.relay, starter.relay(), user=NOBODY)
    assert re.search(r"cannot open /sys/fs/bpf/.*; run as root", done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == FAILED
    assert starter.left_over()["attached"]
    os.chmod(starter.lock, 0o644)
    running.process = start(starter, starter.relay()).process
