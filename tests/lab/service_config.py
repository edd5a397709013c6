"""The configuration files of the services, for a `Site`. Pure: values in, TOML text out."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key, render_key
from signaling.access.api_keys import ApiKey
from tests.lab.site import Site

CLUSTER = 7
KEY_ID = 1
Datapath = Literal["xdp", "socket"]
Inner = Literal["spp", "transparent"]
Echo = Literal["audio", "opus", "paced"]
Backend = Literal["echo", "parrot", "realtime"]


@dataclass(frozen=True)
class Vip:
    id: int
    public: Address
    local: Address


@dataclass(frozen=True)
class Cluster:
    """One beside that of the site, for transceivers of the other family."""

    id: int
    allow: str


@dataclass(frozen=True)
class Setup:
    """What all three services agree on, and what a test chooses. `inner_addresses` and `clusters`
    come beside the site's own; `model` is the backend's section of the configuration."""

    key: Key
    control_token: str = field(repr=False)
    vips: tuple[Vip, ...]
    datapath: Datapath = "xdp"
    backend: Backend = "echo"
    model: Mapping[str, object] = field(default_factory=dict)
    capacity: int = 40
    workers: int = 1
    drain_s: float = 0  # a test's services end at once
    setup_s: float = 15.0  # until an offer whose client never comes is forgotten
    redis: str = field(default="", repr=False)  # instead of a list of transceivers
    api_keys: tuple[ApiKey, ...] = ()  # none: signaling is open to all
    inner: Inner = "spp"
    inner_addresses: tuple[str, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    max_flows: int = 16384
    max_flows_v6: int = 4096


def keys(setup: Setup) -> str:
    return f"{render_key(setup.key)}\n"


def relay(site: Site, setup: Setup, keys_file: Path) -> str:
    base = {"inner_port_base": site.vip[1] + 16} if site.dev_local else {}
    return toml(
        {
            "instance": site.instance,
            "datapath": setup.datapath,
            "keys_file": keys_file,
            "max_flows": setup.max_flows,
            "max_flows_v6": setup.max_flows_v6,
            "inner": setup.inner,
            "inner_address": [site.relay_inner, *setup.inner_addresses],
            "allow_inner_clients": site.dev_local,
            "dev_local": site.dev_local,
            "run_dir": site.directory,
            "admin": render(site.relay_admin),
            **_redis(setup),
            **base,
        },
        *(
            ("vip", {"id": vip.id, "public": render(vip.public), "local": render(vip.local)})
            for vip in setup.vips
        ),
        *(("interface", {"name": name, "role": role}) for name, role in site.interfaces),
        *_clusters(site, setup),
    )


def transceiver(site: Site, setup: Setup, keys_file: Path, cluster: int = CLUSTER) -> str:
    prefix = _prefix(site.allow)
    text = toml(
        {
            "listen": render(site.endpoint),
            "inner": "spp" if setup.inner == "spp" else "plain",
            "relay_networks": [str(ip_network(relay.inner)) for relay in site.relays],
            **({"cluster_prefix": prefix} if prefix else {}),
            "cluster": cluster,
            "keys_file": keys_file,
            "mint": KEY_ID,
            "control_token": setup.control_token,
            **_redis(setup),
            "workers": setup.workers,
            "capacity": setup.capacity,
            "max_lateness_ms": 10_000,  # tests share their cores with other tests
            "drain_s": setup.drain_s,
            "setup_s": setup.setup_s,
            "backend": setup.backend,
        }
    )
    return f"{text}\n[{setup.backend}]\n{toml(setup.model)}" if setup.model else text


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
    return toml(
        {
            "listen": listen,
            "keys_file": keys_file,
            "control_token": setup.control_token,
            **({} if setup.api_keys else {"access": "open"}),
            "limits.offers_per_minute_per_address": 0,  # a lab's clients are few
            **_redis(setup),
            **(tls if certificate_for else {}),
        },
        *(
            ("api_key", {"subject": key.subject, "sha256": key.digest.hex()})
            for key in setup.api_keys
        ),
        *(() if setup.redis else (_transceivers(site, setup),)),
        (
            "ingress",
            {
                "name": site.instance,
                "vips": [render(vip)],
                "admin": [f"http://{render(relay.admin)}" for relay in site.relays],
            },
        ),
        *_clusters(site, setup),
    )


def _redis(setup: Setup) -> dict[str, object]:
    return {"redis": setup.redis} if setup.redis else {}


def _transceivers(site: Site, setup: Setup) -> tuple[str, dict[str, object]]:
    return "transceiver", {"endpoint": render(site.endpoint), "workers": setup.workers}


def _clusters(site: Site, setup: Setup) -> Iterator[tuple[str, dict[str, object]]]:
    for cluster in (Cluster(CLUSTER, site.allow), *setup.clusters):
        prefix = _prefix(cluster.allow)
        yield (
            "cluster",
            {
                "id": cluster.id,
                "allow": [cluster.allow],
                **({"prefix": prefix} if prefix else {}),
            },
        )


def _prefix(allow: str) -> str | None:
    """The /96 of an IPv6 network; None for IPv4, where it is the default."""
    network = ip_network(allow)
    return str(network.supernet(new_prefix=96)) if network.version == 6 else None


def toml(keys: Mapping[str, object], *sections: tuple[str, Mapping[str, object]]) -> str:
    """Keys, then an array of tables for each section."""
    lines = [f"{key} = {_value(value)}" for key, value in keys.items()]
    for name, values in sections:
        lines.append(f"\n[[{name}]]")
        lines += [f"{key} = {_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """JSON's texts, numbers, booleans and flat lists are TOML's too."""
    return json.dumps(str(value) if isinstance(value, Path) else value)
