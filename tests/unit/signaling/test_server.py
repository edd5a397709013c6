import contextlib
import io
import logging
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from relayctl.wire.route_token import render_key
from signaling.config import SignalingConfig
from signaling.server import StartError, check, configure_log, listen, secrets_of
from tests.unit.signaling.fake_transceiver import CONFIG, CONTROL_TOKEN, KEY, configuration


@pytest.fixture
def text(tmp_path: Path) -> str:
    """A configuration whose key file is there."""
    keys = tmp_path / "route.keys"
    keys.write_text(render_key(KEY))
    return f'state_dir = "{tmp_path}"' + CONFIG.replace("/nowhere/route.keys", str(keys))


def test_check_reads_the_keys(text: str) -> None:
    assert check(configuration(text)) == {1: KEY}


def with_keys(text: str, tmp_path: Path, content: bytes) -> SignalingConfig:
    (tmp_path / "route.keys").write_bytes(content)
    return configuration(text)


def test_check_names_what_is_wrong(text: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"keys_file = '/nowhere/route\.keys': No such file"):
        check(configuration())
    with pytest.raises(StartError, match=r"route\.keys': no key in it"):
        check(with_keys(text, tmp_path, b"# nothing"))
    with pytest.raises(StartError, match=r"route\.keys'"):
        check(with_keys(text, tmp_path, b"\xff"))
    tls = f'tls = {{cert = "{tmp_path}/c", key = "{tmp_path}/k"}}\n'
    with pytest.raises(StartError, match=r"tls: .*No such file"):
        check(configuration(tls + text))
    for name in "ck":
        (tmp_path / name).write_text("rubbish")
    with pytest.raises(StartError, match="are no PEM pair"):
        check(configuration(tls + text))


def test_check_opens_the_geoip_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "city.mmdb"
    config = configuration(f'geoip = "{file}"\n{text}')
    with pytest.raises(StartError, match=r"geoip = '.*city\.mmdb': No such file"):
        check(config)
    file.write_text("rubbish")
    with pytest.raises(StartError, match="is no MaxMind DB"):
        check(config)


@pytest.mark.parametrize("option", ["bogus=1", "protocol=9", "socket_timeout=x", "retry=1"])
def test_check_reads_the_options_of_redis(text: str, option: str) -> None:
    redis = f'redis = "redis://:pass-word-1@127.0.0.1/0?{option}"\n'
    with pytest.raises(StartError, match=r"redis: .*take it out") as caught:
        check(configuration(redis + text))
    assert "pass-word-1" not in str(caught.value)


def test_the_password_of_redis_is_a_secret_in_both_its_forms() -> None:
    config = configuration('redis = "redis://:pass%40word-1@127.0.0.1/0"' + CONFIG)
    assert {"pass%40word-1", "pass@word-1", CONTROL_TOKEN} <= set(secrets_of(config))


def test_listen_names_the_address_that_is_taken() -> None:
    first = listen(("127.0.0.1", 0))
    with (
        contextlib.closing(first),
        pytest.raises(StartError, match="another program has it"),
    ):
        listen(first.getsockname())
    with pytest.raises(StartError, match="this host has no such address"):
        listen(("203.0.113.99", 0))


def test_listen_takes_only_a_listening_socket() -> None:
    with socket.socket() as deaf, pytest.raises(StartError, match="does not listen"):
        listen(deaf.fileno())
    with pytest.raises(StartError, match="fd:999"):
        listen(999)


def test_the_log_hides_the_control_token(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    root, libraries = logging.getLogger(), logging.root.manager.loggerDict
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in libraries}
    try:
        configure_log(configuration(), logging.DEBUG)
        logging.getLogger("x").debug("sent %s", CONTROL_TOKEN)
        assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for name in tuple(libraries):
            logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))
    assert "sent [hidden]" in written.getvalue()


@contextlib.contextmanager
def running(text: str, tmp_path: Path, *flags: str) -> Iterator[tuple[int, list[str]]]:
    """`signaling serve` on an inherited socket: its port, and afterwards its log."""
    file = tmp_path / "s.toml"
    file.write_text(text)
    log: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fd = listening.fileno()
        command = [sys.executable, "-m", "signaling", "serve", "--config", str(file)]
        service = subprocess.Popen(
            [*command, "--listen", f"fd:{fd}", *flags],
            pass_fds=[fd],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield listening.getsockname()[1], log
        finally:
            service.send_signal(signal.SIGTERM)
            _, errors = service.communicate(timeout=20)
            log.extend(errors.splitlines())
            assert service.returncode in (0, -signal.SIGTERM), errors


def get(url: str, verify: ssl.SSLContext | bool = True) -> httpx.Response:
    """The socket listens before the service runs, so a request waits for it."""
    with httpx.Client(trust_env=False, verify=verify, timeout=30) as client:
        return client.get(url)


def test_serves_on_an_inherited_socket_and_ends_on_sigterm(text: str, tmp_path: Path) -> None:
    with running(text, tmp_path) as (port, log):
        begun = time.monotonic()
        assert get(f"http://127.0.0.1:{port}/healthz").json() == {"status": "ok"}
        reply = get(f"http://127.0.0.1:{port}/")
        assert reply.headers["content-type"].startswith("text/html")
        assert int(reply.headers["content-length"]) == len(reply.content)
        assert "server" not in reply.headers
        assert time.monotonic() - begun < 30
    assert any(f"listening on http://127.0.0.1:{port}" in line for line in log)


def test_serves_https_with_a_certificate_made_at_first_start(text: str, tmp_path: Path) -> None:
    with running(text, tmp_path, "--tls-self-signed", "127.0.0.1") as (port, log):
        deadline = time.monotonic() + 30
        while not (tmp_path / "signaling.crt").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        trust = ssl.create_default_context(cafile=str(tmp_path / "signaling.crt"))
        reply = get(f"https://127.0.0.1:{port}/readyz", verify=trust)
        assert reply.status_code == 503
    assert any("self-signed certificate" in line and "SHA-256" in line for line in log)
