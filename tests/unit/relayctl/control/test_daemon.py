"""The daemon and its packet process as they run, on loopback and without privileges."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.wire import spp
from relayctl.wire.address import render
from relayctl.wire.route_token import Key
from tests.unit.relayctl.local_relay import LocalRelay, is_alive, kill
from tests.unit.relayctl.packet.test_sockets import LOOPBACK
from tests.unit.relayctl.packets import DTLS, KEY, binding_request, rtp, token


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[LocalRelay]:
    relay = LocalRelay(tmp_path)
    yield relay
    relay.close()


@pytest.fixture
def relay(stopped: LocalRelay) -> LocalRelay:
    stopped.start()
    return stopped


@pytest.fixture
def client() -> Iterator[socket.socket]:
    with _peer() as sock:
        yield sock


@pytest.fixture
def endpoint() -> Iterator[socket.socket]:
    with _peer() as sock:
        yield sock


def _peer() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((LOOPBACK, 0))
    sock.settimeout(2)
    return sock


def open_flow(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket, key: Key = KEY
) -> bytes:
    """Send a first packet; the SPP header that the endpoint sees."""
    request = binding_request(token(endpoint.getsockname(), key))
    client.sendto(request, relay.vip)
    header, payload = spp.split(endpoint.recv(2000))
    assert payload == request
    assert spp.decode(header) == spp.Header(client.getsockname(), relay.vip)
    return header


def test_a_call_shows_in_the_api(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    header = open_flow(relay, client, endpoint)
    endpoint.sendto(header + DTLS, relay.inner)
    assert client.recvfrom(2000) == (DTLS, relay.vip)
    path = f"/v1/flows/{render(client.getsockname())}"
    relay.until(lambda: relay.admin.get(path).json().get("state") == "confirmed")
    flow = relay.admin.get(path).json()
    assert flow["endpoint"] == render(endpoint.getsockname())
    assert flow["packets"] == {"up": 1, "down": 1}
    assert (flow["path"], flow["reason"]) == ("user", "socket_datapath")
    relay.until(lambda: relay.status()["flows"]["confirmed"] == 1)
    assert relay.status()["reasons"]["slow_installed"] == 1


def test_a_client_whose_address_changed_reaches_its_endpoint(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    header = open_flow(relay, client, endpoint)
    endpoint.sendto(header + DTLS, relay.inner)
    client.sendto(rtp(77), relay.vip)
    endpoint.recv(2000)
    relay.until(lambda: "ferryline_relay_hints 1.0" in relay.admin.get("/metrics").text)
    with _peer() as moved:
        moved.sendto(rtp(77), relay.vip)
        header, payload = spp.split(endpoint.recv(2000))
        assert payload == rtp(77)
        assert spp.decode(header).client == moved.getsockname()


def test_a_deleted_flow_does_not_come_back_with_its_return_packets(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    header = open_flow(relay, client, endpoint)
    path = f"/v1/flows/{render(client.getsockname())}"
    relay.until(lambda: relay.admin.get(path).status_code == 200)
    assert relay.control.delete(path).status_code == 204
    endpoint.sendto(header + DTLS, relay.inner)
    relay.until(lambda: relay.status()["reasons"].get("slow_tombstone") == 1)
    assert relay.admin.get(path).status_code == 404


def test_keys_are_read_again_on_sighup(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    new = Key(2, bytes(32))
    relay.write_keys(new)
    relay.signal(signal.SIGHUP)
    relay.until(lambda: _opens(relay, endpoint, new))
    relay.keys_file.write_text("2 nonsense")
    relay.signal(signal.SIGHUP)
    open_flow(relay, client, endpoint, new)


def _opens(relay: LocalRelay, endpoint: socket.socket, key: Key) -> bool:
    with _peer() as sock:
        endpoint.settimeout(0.1)
        try:
            return bool(open_flow(relay, sock, endpoint, key))
        except TimeoutError:
            return False
        finally:
            endpoint.settimeout(2)


def test_a_second_daemon_is_refused(relay: LocalRelay) -> None:
    code, said = relay.give_up()
    assert code == 1
    assert "already served by process" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop(relay: LocalRelay, number: signal.Signals) -> None:
    child = relay.status()["packet_process_pid"]
    relay.signal(number)
    code, said = relay.end()
    assert (code, "Traceback" in said) == (0, False), said
    assert not is_alive(child)


def test_a_second_signal_ends_at_once(relay: LocalRelay) -> None:
    """It does not wait for a packet process that hangs, as the first one does."""
    child = relay.status()["packet_process_pid"]
    os.kill(child, signal.SIGSTOP)
    relay.signal(signal.SIGTERM)
    time.sleep(0.3)
    relay.signal(signal.SIGTERM)
    try:
        assert relay.wait() == 0
        assert is_alive(child)
    finally:
        os.kill(child, signal.SIGCONT)  # its channel is closed: it goes by itself
    _, said = relay.end()
    assert "Traceback" not in said


def test_a_killed_daemon_leaves_no_orphan_and_a_new_one_starts(relay: LocalRelay) -> None:
    child = relay.status()["packet_process_pid"]
    relay.signal(signal.SIGKILL)
    relay.end()
    relay.start()
    assert not is_alive(child)
    assert relay.status()["packet_process_pid"] != child


def test_the_daemon_ends_with_its_packet_process(relay: LocalRelay) -> None:
    kill(relay.status()["packet_process_pid"])
    code, said = relay.end()
    assert code == 1
    assert "the packet process was killed by signal 9" in said


def test_nobody_is_refused_while_the_packet_process_is_dead(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    """Until the daemon notices, the kernel would answer "port unreachable"."""
    header = open_flow(relay, client, endpoint)
    client.connect(relay.vip)
    endpoint.connect(relay.inner)
    child = relay.status()["packet_process_pid"]
    relay.signal(signal.SIGSTOP)  # so that it cannot notice
    kill(child)
    relay.until(lambda: not is_alive(child))
    for sock, datagram in ((client, DTLS), (endpoint, header + DTLS)):
        sock.send(datagram)
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):  # and not ConnectionRefusedError
            sock.recv(2000)
    relay.signal(signal.SIGCONT)
    code, _ = relay.end()
    assert code == 1


def test_a_hung_packet_process_is_replaced(
    relay: LocalRelay, client: socket.socket, endpoint: socket.socket
) -> None:
    header = open_flow(relay, client, endpoint)
    endpoint.sendto(header + DTLS, relay.inner)
    hung = relay.status()["packet_process_pid"]
    os.kill(hung, signal.SIGSTOP)
    relay.until(lambda: relay.admin.get("/readyz").text == "the packet process is silent\n")
    relay.until(lambda: relay.admin.get("/readyz").status_code == 200)
    assert not is_alive(hung)
    assert relay.status()["packet_process_pid"] != hung
    assert "packet_process_replaced_total 1.0" in relay.admin.get("/metrics").text
    with _peer() as other:
        open_flow(relay, other, endpoint)
    relay.signal(signal.SIGTERM)
    code, said = relay.end()
    assert code == 0
    assert said.count(f"the packet process {hung} hung and was killed") == 1
    assert "Traceback" not in said


def test_what_cannot_start_says_why(stopped: LocalRelay) -> None:
    stopped.keys_file.unlink()
    code, said = stopped.give_up()
    assert code == 2
    assert "keys_file = " in said
    stopped.write_keys(KEY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(stopped.vip)
        code, said = stopped.give_up()
    assert code == 1
    assert f"cannot bind {render(stopped.vip)}: another process has it" in said
