"""The configuration files of the services, for a `Site`. Pure: values in, TOML text out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key, render_key
from tests.lab.site import Site

CLUSTER = 7
KEY_ID = 1
Datapath = Literal["xdp", "socket"]
Echo = Literal["audio", "opus"]


@dataclass(frozen=True)
class Vip:
    id: int
    public: Address
    local: Address


@dataclass(frozen=True)
class Setup:
    """What all three services agree on, and what a test chooses."""

    key: Key
    control_token: str = field(repr=False)
    vips: tuple[Vip, ...]
    datapath: Datapath = "xdp"
    echo: Echo = "audio"
    capacity: int = 40


def keys(setup: Setup) -> str:
    return f"{render_key(setup.key)}\n"


def relay(site: Site, setup: Setup, keys_file: Path) -> str:
    base = {"inner_port_base": site.vip[1] + 16} if site.dev_local else {}
    return _toml(
        {
            "instance": site.instance,
            "datapath": setup.datapath,
            "keys_file": keys_file,
            "max_flows": 16384,
            "inner_address": site.relay_inner,
            "allow_inner_clients": site.dev_local,
            "dev_local": site.dev_local,
            "run_dir": site.directory,
            "admin": render(site.relay_admin),
            **base,
        },
        *(
            ("vip", {"id": vip.id, "public": render(vip.public), "local": render(vip.local)})
            for vip in setup.vips
        ),
        *(("interface", {"name": name, "role": role}) for name, role in site.interfaces),
        _cluster(site),
    )


def transceiver(site: Site, setup: Setup, keys_file: Path) -> str:
    text = _toml(
        {
            "listen": render(site.endpoint),
            "inner": "spp",
            "relay_networks": [f"{site.relay_inner}/32"],
            "cluster": CLUSTER,
            "keys_file": keys_file,
            "mint": KEY_ID,
            "control_token": setup.control_token,
            "capacity": setup.capacity,
            "backend": "echo",
        }
    )
    return f"{text}\n[echo]\nmode = {_value(setup.echo)}\n"


def signaling(
    site: Site,
    setup: Setup,
    keys_file: Path,
    *,
    listen: str,
    vip: Address,
    certificate_for: str = "",
) -> str:
    """`certificate_for`: serve https under this name."""
    tls = {"tls_self_signed": [certificate_for], "state_dir": site.directory}
    return _toml(
        {
            "listen": listen,
            "keys_file": keys_file,
            "control_token": setup.control_token,
            **(tls if certificate_for else {}),
        },
        ("transceiver", {"endpoint": render(site.endpoint)}),
        (
            "ingress",
            {
                "name": site.instance,
                "vips": [render(vip)],
                "admin": site.admin_url,
            },
        ),
        _cluster(site),
    )


def _cluster(site: Site) -> tuple[str, dict[str, object]]:
    return "cluster", {"id": CLUSTER, "allow": [site.allow]}


def _toml(keys: Mapping[str, object], *sections: tuple[str, Mapping[str, object]]) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in keys.items()]
    for name, values in sections:
        lines.append(f"\n[[{name}]]")
        lines += [f"{key} = {_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """JSON's texts, numbers, booleans and flat lists are TOML's too."""
    return json.dumps(str(value) if isinstance(value, Path) else value)
