"""Signaling alone on one core; on the other Redis, a stub for a transceiver and all the clients."""

import contextlib
import hashlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key, render_key
from signaling.access import api_keys
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Program, Programs
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER, KEY_ID, toml
from tests.lab.services import wait_for

DIRECTORY = REPOSITORY / "build" / "bench-signaling"
SIGNALING_CPU, OTHERS_CPU = 0, 1
SIGNALING: Address = ("127.0.0.1", 24578)
STUB: Address = ("127.0.0.1", 24579)
CALLS_URL = f"http://{render(SIGNALING)}/v1/realtime/calls"
BALANCER = "127.0.0.1"  # the generator, where its connections are kept ones
SUBJECT = "bench"
PER_MINUTE = 1_000_000  # a limit that is there and is not reached
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Rig:
    signaling: Program
    key_file: Path

    def send(self, rate: float, seconds: float, *, kept: bool = True) -> dict[str, Any]:
        """Offers at `rate`: the report of `offers`, with the CPU time of signaling per offer.
        `kept`: over a balancer's connections, else over one of its own each."""
        before = self.signaling.cpu_s()
        argv = [sys.executable, "-m", "tests.bench_signaling.offers", "--url", CALLS_URL]
        argv += ["--rate", str(rate), "--seconds", str(seconds), "--key-file", str(self.key_file)]
        argv += ["--kept"] if kept else []
        done = subprocess.run(
            argv, check=True, stdout=subprocess.PIPE, timeout=seconds + _PATIENCE_S, cwd=REPOSITORY
        )
        report: dict[str, Any] = json.loads(done.stdout)
        spent = self.signaling.cpu_s() - before
        return {"rate": rate, "cpu_ms": round(spent / report["offers"] * 1e3, 3), **report}


@contextlib.contextmanager
def rig() -> Iterator[Rig]:
    """Everything up, everything gone at the end."""
    programs = Programs(DIRECTORY)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {OTHERS_CPU})  # of all that is started from here on
    try:
        with RedisServer() as redis:
            yield _start(programs, redis.url)
    finally:
        programs.stop_all()
        os.sched_setaffinity(0, before)


def _start(programs: Programs, redis_url: str) -> Rig:
    keys, token = Key(KEY_ID, secrets.token_bytes(32)), secrets.token_urlsafe(24)
    api_key = api_keys.render(secrets.token_bytes(api_keys.RANDOM_BYTES))
    keys_file = _write("route.keys", f"{render_key(keys)}\n")
    key_file = _write("api.key", api_key)
    config = _write("signaling.toml", _config(keys_file, token, api_key, redis_url))
    node = Node(None, programs)
    stub = [sys.executable, "-m", "tests.bench_signaling.stub", "--listen", render(STUB)]
    stub += ["--cluster", str(CLUSTER), "--keys", str(keys_file), "--mint", str(KEY_ID)]
    started = node.popen("stub", [*stub, "--redis", redis_url])
    wait_for(started, node, f"http://{render(STUB)}/readyz")
    argv = [sys.executable, "-m", "signaling", "serve", "--config", str(config)]
    signaling = node.popen("signaling", ["taskset", "--cpu-list", str(SIGNALING_CPU), *argv])
    wait_for(signaling, node, f"http://{render(SIGNALING)}/readyz")
    return Rig(signaling, key_file)


def _config(keys_file: Path, token: str, api_key: str, redis_url: str) -> str:
    """Transceivers are found in Redis alone."""
    digest = hashlib.sha256(api_key.encode()).hexdigest()
    limit = {"offers_per_minute": PER_MINUTE}
    return toml(
        {
            "listen": render(SIGNALING),
            "keys_file": keys_file,
            "control_token": token,
            "redis": redis_url,
            "access": "keys",
            "trusted_proxies": [BALANCER],
        },
        ("api_key", {"subject": SUBJECT, "sha256": digest, **limit}),
        ("ingress", {"name": "relay-a", "vips": ["203.0.113.10:3478"]}),
        ("cluster", {"id": CLUSTER, "allow": ["127.0.0.0/8"]}),
    )


def _write(name: str, text: str) -> Path:
    """A file that only we may read: most of these hold secrets."""
    path = DIRECTORY / name
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return path
