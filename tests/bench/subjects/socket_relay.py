"""Our own relay without XDP: the real service with its socket datapath."""

import sys
from pathlib import Path

from relayctl.wire.address import render
from relayctl.wire.route_token import render_key
from tests.bench import flow_opening, wire
from tests.bench.generator import Generator
from tests.bench.rig import DIRECTORY, PREFIX, Rig
from tests.bench.subjects import legs
from tests.bench.subjects.process import ProcessRelay, listens
from tests.bench.wire import HOSTS, VIP

_PER_TOKEN = 4  # clients of one token: below the relay's cap
_OPENING_RATE = 5_000.0
INSTANCE = f"{PREFIX}serve"


def configuration(datapath: str, max_flows: int = 1 << 17) -> Path:
    """Write the relay's configuration; its path."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    keys = DIRECTORY / "route.keys"
    keys.write_text(render_key(flow_opening.KEY) + "\n")
    keys.chmod(0o600)
    path = DIRECTORY / f"relay-{datapath}.toml"
    path.write_text(
        f"""
instance = "{INSTANCE}"
datapath = "{datapath}"
keys_file = "{keys}"
max_flows = {max_flows}
inner_address = "{HOSTS[4]["inner0"]}"
run_dir = "{DIRECTORY}"
admin = "{HOSTS[4]["inner0"]}:9470"

[[vip]]
id = 1
public = "{render(VIP[4])}"

[[interface]]
name = "outer0"
role = "outer"

[[interface]]
name = "inner0"
role = "inner"

[[cluster]]
id = {flow_opening.CLUSTER}
allow = ["{HOSTS[4]["sink0"]}/32"]
"""
    )
    return path


def serve(datapath: str) -> list[str]:
    """Command line of the real service."""
    config = str(configuration(datapath))
    return [sys.executable, "-m", "relayctl", "serve", "--config", config]


def opening(rig: Rig, flows: int) -> Generator:
    """First packets of `flows` clients, a token for every few."""
    unique = flow_opening.tokens(-(-flows // _PER_TOKEN))
    first = wire.from_client(4, flow_opening.binding_request(bytes(24)))
    token_at = first.head + flow_opening.TOKEN_AT
    tokens = flow_opening.shared(unique, _PER_TOKEN)
    return Generator(rig, [(first, "gen0")], tokens=tokens, token_at=token_at)


def socket_relay(rig: Rig) -> ProcessRelay:
    return ProcessRelay(
        *(rig, [legs.forward()], "Ferryline, socket datapath", serve("socket")),
        ready=lambda: listens(rig, VIP[4][1]),
        opening=lambda flows: opening(rig, flows),
        opening_rate=_OPENING_RATE,
        refreshing=lambda: Generator(rig, [(legs.back().frame, "sink0")]),
    )
