"""`make up`: the whole service stays up in the background, and a person talks to it.

With root in a lab of namespaces over XDP, with one leg into the host; without it on 127.0.0.1 over
the socket datapath. A parrot answers, or another `--backend`; `realtime` takes its section from the
environment, as the transceiver reads it. A second start changes nothing. `tests.lab.down` ends it.
"""

import argparse
import contextlib
import errno
import ipaddress
import socket
import sys

from relayctl.wire.address import Address, render
from tests.lab import namespace, up_state
from tests.lab.down import LOOPBACK, PREFIX, down
from tests.lab.program import ProgramError
from tests.lab.service_config import Backend, Vip
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace, Site, in_lab
from tests.lab.topology import Lab
from tests.lab.up_state import UpState

_LOOPBACK_PORTS = 23478
_OUTSIDE_PORT = 8  # the local network's VIP stands so far above the first one
_MEDIA_PORT = 3478  # and its devices see it at this port of HOST
_TLS_PORT = 8443

_TELLS = {
    "parrot": "what you said, when you pause; talk over it and it falls silent",
    "echo": "what you say, while you say it",
    "realtime": "the model of FERRYLINE_TRANSCEIVER_REALTIME__URL",
}


class UpError(RuntimeError):
    """It cannot come up as things are; the message says what to do."""


def up(port: int, host: str | None, rootless: str | None, backend: Backend = "parrot") -> UpState:
    """Start everything, or leave nothing behind. Raises `UpError`, `ProgramError`.

    `host`: an address of ours that other devices reach. `rootless`: why there is no lab."""
    with contextlib.ExitStack() as sockets, contextlib.ExitStack() as undo:
        page = sockets.enter_context(bind(("127.0.0.1", port), socket.SOCK_STREAM))
        outside = sockets.enter_context(Outside(host)) if host else None
        undo.callback(down)
        place, site = _enter_loopback() if rootless else _enter_lab()
        services = Services(
            site,
            datapath="socket" if rootless else "xdp",
            backend=backend,
            more_vips=(outside.vip(site),) if outside else (),
            listener=page,
        )
        services.__enter__()
        urls = [f"http://localhost:{port}"]
        if outside is not None:
            outside.serve(services)
            urls.append(f"https://{host}:{_TLS_PORT}")
        state = UpState.of(services.setup.datapath, urls, site.directory, services.programs)
        state.save()
        place.keep()
        undo.pop_all()
    return state


class Outside:
    """What devices of the local network reach: https, and a VIP of its own behind a gate."""

    def __init__(self, host: str) -> None:
        """Takes the ports. Raises `UpError`."""
        self._tls = bind((host, _TLS_PORT), socket.SOCK_STREAM)
        try:
            self._media = bind((host, _MEDIA_PORT), socket.SOCK_DGRAM)
        except UpError:
            self._tls.close()
            raise

    def __enter__(self) -> "Outside":
        return self

    def __exit__(self, *_: object) -> None:
        self._tls.close()
        self._media.close()

    def vip(self, site: Site) -> Vip:
        """What clients send to is not what arrives at the relay, as behind a 1:1 NAT."""
        local = site.vip[0], site.vip[1] + _OUTSIDE_PORT
        return Vip(2, public=self._media.getsockname(), local=local)

    def serve(self, services: Services) -> None:
        vip, number = self.vip(services.site), self._media.fileno()
        gate = [sys.executable, "-m", "tests.lab.udp_gate", "--target", render(vip.local)]
        services.programs["gate"] = services.site.host.popen(
            "gate", [*gate, "--fd", str(number)], pass_fds=[number]
        )
        services.start_signaling_at("signaling-tls", self._tls, vip.public, vip.public[0])


def bind(address: Address, kind: socket.SocketKind) -> socket.socket:
    """A bound socket, listening if it is TCP. Raises `UpError`."""
    sock = socket.socket(socket.AF_INET, kind)
    try:
        if kind is socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        if kind is socket.SOCK_STREAM:
            sock.listen(128)
    except OSError as error:
        sock.close()
        mend = {
            errno.EADDRINUSE: "another program has it; end that one, or choose with PORT=…",
            errno.EADDRNOTAVAIL: "this machine has no such address; `ip address` shows them",
        }.get(error.errno or 0, error.strerror)
        raise UpError(f"{render(address)}: {mend}") from None
    return sock


def _enter_lab() -> tuple[Lab, Site]:
    lab = Lab(PREFIX, host_leg=True).__enter__()
    return lab, in_lab(lab)


def _enter_loopback() -> tuple[LoopbackPlace, Site]:
    place = LoopbackPlace(LOOPBACK, _LOOPBACK_PORTS, primary_host()).__enter__()
    return place, place.site()


def primary_host() -> str:
    """Our private address on the way to the internet, else 127.0.0.1.

    For the VIP: Firefox sends nothing to a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:  # no network at all
            return "127.0.0.1"
        host: str = sock.getsockname()[0]
    return host if ipaddress.ip_address(host).is_private else "127.0.0.1"


def _tell(state: UpState, rootless: str | None) -> None:
    kernel = "XDP: packets of a call stay in the kernel"
    print(f"datapath: {state.datapath} ({f'no privileges: {rootless}' if rootless else kernel})")
    print(f"talk:     {state.urls[0]}")
    for url in state.urls[1:]:
        print(f"          {url}  (from other devices; the browser will doubt the certificate)")
    print(f"look:     .venv/bin/relayctl --config {state.logs}/relay.toml flows list")
    print(f"logs:     {state.logs}/*.log")
    print("stop:     make down")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text} is no port; choose one of 1-65535")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Start Ferryline in the background")
    parser.add_argument("--port", type=_port, default=8080, help="of the page, on localhost")
    parser.add_argument("--host", help="an address of this machine to serve https on, too")
    parser.add_argument("--rootless", action="store_true", help="as if we were not root")
    parser.add_argument("--backend", choices=_TELLS, default="parrot", help="who answers")
    arguments = parser.parse_args()
    rootless = "asked for" if arguments.rootless else namespace.unavailable()
    if arguments.backend == "realtime" and rootless is None:
        rootless = "a lab of namespaces reaches no server outside"
    found = up_state.load()
    if found is not None and not found.ended():
        print("already up (PORT, HOST and BACKEND count at the next start: `make down` first)")
        _tell(found, None if found.datapath == "xdp" else "as it was started")
        return
    if found is not None:
        print(f"cleaning up first: {', '.join(found.ended())} had ended", file=sys.stderr)
    try:
        down()
        state = up(arguments.port, arguments.host, rootless, arguments.backend)
    except (UpError, ProgramError, PermissionError) as error:
        sys.exit(f"cannot come up: {error}")
    _tell(state, rootless)
    print(f"answers:  {_TELLS[arguments.backend]}")


if __name__ == "__main__":
    main()
