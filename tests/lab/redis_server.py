"""A real Redis for a test, that can be killed, hung, emptied and started again.

In memory only, on the host or in a box of the lab. A unix socket is there beside the port, so a
test reaches it from outside its namespace too. It ends with the thread that started it, at the
latest.
"""

import contextlib
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import redis

from relayctl.wire.address import Address, render
from tests.lab.node import Node
from tests.lab.program import Program, ProgramError, Programs

_READY_S = 20.0
_ANSWER_S = 5.0


class RedisServer:
    """A context manager. Keeps port and password when it is started again."""

    def __init__(
        self,
        node: Node | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        password: str = "",
        options: Sequence[str] = (),
    ) -> None:
        """`node`: where it runs, the host if none. `port` 0: one that is free. `options`: more of
        the command line."""
        self._given = node
        self.address: Address = (host, port)
        self.password = password
        self._options = options
        self._open = contextlib.ExitStack()
        self._program: Program | None = None

    def __enter__(self) -> "RedisServer":
        if shutil.which("redis-server") is None:
            raise ProgramError("there is no redis-server; apt-get install redis-server")
        self._directory = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="fl-")))
        self._node = self._given or Node(None, Programs(self._directory))
        if not self.address[1]:
            self.address = (self.address[0], self._free_port())
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._open.close()

    @property
    def url(self) -> str:
        """For those who reach its address."""
        return f"redis://{self._credentials}{render(self.address)}/0"

    @property
    def unix_url(self) -> str:
        """For whoever is on this machine."""
        return f"unix://{self._credentials}{self._socket}?db=0"

    @property
    def pid(self) -> int | None:
        """Of the server; None while there is none."""
        return self._program.pid if self._program else None

    def start(self) -> None:
        """Start it, empty; waits until it answers. Raises `ProgramError`."""
        host, port = self.address
        argv = ["setpriv", "--pdeathsig", "KILL", "redis-server", "--bind", host]
        argv += ["--port", str(port), "--daemonize", "no"]
        argv += ["--unixsocket", str(self._socket), "--dir", str(self._directory)]
        argv += ["--save", "", "--appendonly", "no", "--protected-mode", "no"]
        if self.password:
            argv += ["--requirepass", self.password]
        argv += self._options
        self._program = self._node.popen("redis", argv)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            self._program.expect_running()
            if time.monotonic() > deadline:
                raise ProgramError(f"redis-server does not answer\n{self._program.tail()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL; clients are told at once that nobody listens."""
        if self._program is not None:
            self._program.kill()
            self._program = None

    def hang(self) -> None:
        """SIGSTOP: connections stay, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def flush(self) -> None:
        """Everything in it is gone."""
        with self.client() as client:
            client.flushall()

    def fill(self, full: bool = True) -> None:
        """It has no room for another key, and refuses to write; or it has again."""
        with self.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 1 if full else 0)

    def read_only(self, refuses: bool = True) -> None:
        """It refuses to write, as a master that lost its replicas does; or it writes again."""
        with self.client() as client:
            client.config_set("min-replicas-to-write", 1 if refuses else 0)

    @contextlib.contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """A blocking client, to look and to poison."""
        client = redis.Redis.from_url(
            self.unix_url, decode_responses=True, socket_timeout=_ANSWER_S
        )
        try:
            yield client
        finally:
            client.close()

    @property
    def _socket(self) -> Path:
        return self._directory / "redis.sock"

    @property
    def _credentials(self) -> str:
        return f":{self.password}@" if self.password else ""

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:  # also while it loads
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._program is not None:
            self._program.process.send_signal(number)

    def _free_port(self) -> int:
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        with self._node.socket(family, socket.SOCK_STREAM) as sock:
            sock.bind((self.address[0], 0))
            port: int = sock.getsockname()[1]
        return port
