"""A relay that is not running: configuration, keys and pins in a directory of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from relayctl.cli.main import cli
from relayctl.cli.session import Session
from relayctl.datapath.base import Nexthop
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.inspect.reader import now
from relayctl.reason import Reason
from relayctl.wire.route_token import Key, render_key
from tests.unit.relayctl.inspect.pins import pinned
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.test_config import TOML

KEYS = {1: Key(1, bytes(range(32))), 2: Key(2, bytes(range(32, 64)))}


@dataclass
class Relay:
    root: Path
    datapath: MemoryDatapath = field(default_factory=MemoryDatapath)
    unloaded: list[tuple[str, str]] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.root / "relay.toml"

    @property
    def keys(self) -> Path:
        return self.root / "route.keys"

    def session(self) -> Session:
        return Session(
            environ={},
            default_config=self.root / "no.toml",
            open_pins=lambda *_: pinned(self.datapath),
            unload=lambda *place: self.unloaded.append(place),
        )

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command with the configuration."""
        return self.bare("--config", str(self.config), *arguments, stdin=stdin)

    def bare(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command without one."""
        return CliRunner().invoke(cli, arguments, obj=self.session(), input=stdin)


@pytest.fixture
def relay(tmp_path: Path) -> Relay:
    """Two flows, two nexthops, some counters."""
    made = Relay(tmp_path)
    made.keys.write_text("".join(f"{render_key(key)}\n" for key in KEYS.values()))
    made.keys.chmod(0o600)
    places = f'bpffs = "{tmp_path}"\nrun_dir = "{tmp_path}"\n'
    made.config.write_text(places + TOML.replace("/etc/ferryline/route.keys", str(made.keys)))
    (tmp_path / "ferryline/relay-a").mkdir(parents=True)
    fill(made.datapath, now)
    return made


def fill(datapath: MemoryDatapath, clock: Callable[[], int]) -> None:
    stamp = clock()
    flow = Flow(
        endpoint=("10.2.0.2", 5000),
        cluster=7,
        sport=5103,
        nexthop_in=1,
        nexthop_out=2,
        flags=CONFIRMED,
        seen_up=stamp,
        seen_down=stamp,
        packets_up=1500,
        packets_down=2,
        bytes_up=180_000,
        bytes_down=240,
        born=stamp - 30,
    )
    datapath.flows.install(FlowKey(("198.51.100.9", 40001), 1), flow)
    datapath.flows.install(
        FlowKey(("198.51.100.7", 40000), 1),
        Flow(endpoint=("10.2.0.3", 5000), cluster=7, sport=5104, nexthop_in=1, born=stamp),
    )
    datapath.write_nexthop(1, Nexthop(2, "10.2.0.2", valid=True))
    datapath.write_nexthop(2, Nexthop(1, "10.3.0.1", valid=True, tags=(100, 0)))
    datapath.write_slow_reasons({Reason.FORWARD: 1500, Reason.SLOW_INSTALLED: 2})
    datapath.beat(stamp)
