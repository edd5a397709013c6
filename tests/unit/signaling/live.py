"""Signaling in a process of its own, in front of one transceiver on 127.0.0.1."""

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.unit.transceiver.live import KEYS, free_port

API_KEY = "fk_" + "a" * 40
OTHER_KEY = "fk_" + "b" * 40
CONTROL_TOKEN = "control-token-of-the-tests"


@dataclass
class LiveSignaling:
    """`url` to reach it at; `told` is what it wrote to standard error, once it has ended."""

    url: str
    http: httpx.AsyncClient
    told: list[str] = field(default_factory=list)


def api_key(subject: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f'[[api_key]]\nsubject = "{subject}"\nsha256 = "{digest}"\n'


@contextlib.asynccontextmanager
async def live_signaling(
    tmp_path: Path, endpoint: str, sections: str = "", level: str = "debug"
) -> AsyncIterator[LiveSignaling]:
    """Ready for a call to the transceiver at `endpoint`, whose VIP that is too. `sections` are
    more of its configuration."""
    (tmp_path / "route.keys").write_text(KEYS)
    port = free_port()
    file = tmp_path / "signaling.toml"
    file.write_text(
        f'listen = "127.0.0.1:{port}"\nkeys_file = "{tmp_path}/route.keys"\n'
        f'control_token = "{CONTROL_TOKEN}"\n'
        f'[[transceiver]]\nendpoint = "{endpoint}"\n'
        f'[[ingress]]\nname = "relay-a"\nvips = ["{endpoint}"]\n'
        f'[[cluster]]\nid = 7\nallow = ["127.0.0.0/8"]\n{sections}'
    )
    command = ("-m", "signaling", "serve", "--config", str(file), "--log-level", level)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stderr=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    reading = asyncio.ensure_future(process.communicate())
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    if (await http.get("/readyz")).status_code == 200:
                        break
                assert process.returncode is None, (await reading)[1].decode()
                await asyncio.sleep(0.05)
            live = LiveSignaling(url, http)
            yield live
    finally:
        if process.returncode is None:
            process.terminate()
        _, told = await reading
    live.told += told.decode().splitlines()
