"""Redis in the other forms that a URL can name: a Sentinel's, a Cluster, TLS with users.

All on 127.0.0.1, for as long as the context manager is open.
"""

import contextlib
import datetime
import ipaddress
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.lab.node import Node
from tests.lab.program import Programs
from tests.lab.redis_server import RedisServer

HOST = "127.0.0.1"
MASTER = "flows"
USER, PASSWORD = "relay", "pass:word@/"
IN_URL = "pass%3Aword%40%2F"
_SLOTS = 16384
_BUS = 10000  # a cluster's own port lies so far above
_PATIENCE_S = 60.0
_SENTINEL = """port {port}
dir {directory}
sentinel monitor {name} {host} {master} 1
sentinel down-after-milliseconds {name} 500
sentinel failover-timeout {name} 3000
"""


@contextlib.contextmanager
def sentinel() -> Iterator[tuple[str, RedisServer]]:
    """URL, and the master that may be killed: its replica takes over."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fl-")))
        master = stack.enter_context(RedisServer())
        port = str(master.address[1])
        replica = stack.enter_context(RedisServer(options=["--replicaof", HOST, port]))
        _until(lambda: _is_synchronised(replica))
        own = free_port()
        path = directory / "sentinel.conf"
        path.write_text(
            _SENTINEL.format(port=own, directory=directory, name=MASTER, host=HOST, master=port)
        )
        programs = Programs(directory)
        stack.callback(programs.stop_all)
        Node(None, programs).popen("sentinel", ["redis-server", str(path), "--sentinel"])
        _until(lambda: _knows_replica(own))
        yield f"redis+sentinel://{HOST}:{own}/{MASTER}", master


@contextlib.contextmanager
def cluster(masters: int = 3) -> Iterator[str]:
    """URL of a Cluster without replicas."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(RedisServer(port=free_port(), options=["--cluster-enabled", "yes"]))
            for _ in range(masters)
        ]
        clients = [stack.enter_context(server.client()) for server in servers]
        bounds = [n * _SLOTS // masters for n in range(masters + 1)]
        for n, client in enumerate(clients):
            _tell(client, "CLUSTER", "ADDSLOTSRANGE", bounds[n], bounds[n + 1] - 1)
            _tell(client, "CLUSTER", "MEET", HOST, servers[0].address[1])
        _until(lambda: all(_is_whole(client, masters) for client in clients))
        nodes = ",".join(f"{HOST}:{server.address[1]}" for server in servers)
        yield f"redis+cluster://{nodes}"


@contextlib.contextmanager
def tls() -> Iterator[str]:
    """URL with user and password, of a server that speaks TLS with a certificate of its own."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fl-")))
        certificate, key = _certificate(directory)
        port = free_port()
        options = ["--tls-port", str(port), "--tls-auth-clients", "no"]
        options += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        options += ["--tls-ca-cert-file", str(certificate)]
        options += ["--user", USER, "on", f">{PASSWORD}", "~*", "+@all"]
        stack.enter_context(RedisServer(options=options))
        yield f"rediss://{USER}:{IN_URL}@{HOST}:{port}/0?ssl_ca_certs={certificate}"


def free_port() -> int:
    """Low enough that a cluster's own port beside it exists, and is free too."""
    for port in random.sample(range(20000, 30000), 100):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for each in (port, port + _BUS):
                stack.enter_context(socket.socket()).bind((HOST, each))
            return port
    raise OSError("no free pair of ports")


def _tell(client: redis.Redis, *words: object) -> Any:
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "redis did not come up"
        time.sleep(0.05)


def _is_synchronised(replica: RedisServer) -> bool:
    with replica.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")


def _knows_replica(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1.0) as sock:
        sock.sendall(f"SENTINEL REPLICAS {MASTER}\r\n".encode())
        return sock.recv(2) == b"*1"  # an array of one
    return False


def _is_whole(client: redis.Redis, masters: int) -> bool:
    info = _tell(client, "CLUSTER", "INFO")
    said = info if isinstance(info, dict) else dict(x.split(":") for x in info.split())
    return said["cluster_state"] == "ok" and int(said["cluster_known_nodes"]) == masters


def _certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "redis.crt", directory / "redis.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return paths
