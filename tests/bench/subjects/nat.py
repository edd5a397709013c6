"""The kernel's own way: nftables DNAT to the endpoint and masquerade, in the softirq."""

import shutil

from tests.bench import wire
from tests.bench.generator import Generator
from tests.bench.rig import Rig
from tests.bench.subjects import legs
from tests.bench.subjects.base import Leg, NotRun
from tests.bench.wire import ENDPOINT_PORT, HOSTS, VIP

_RULES = f"""
table ip bench {{
  chain in {{
    type nat hook prerouting priority dstnat;
    ip daddr {VIP[4][0]} udp dport {VIP[4][1]} dnat to {HOSTS[4]["sink0"]}:{ENDPOINT_PORT}
  }}
  chain out {{
    type nat hook postrouting priority srcnat;
    oifname "inner0" masquerade
  }}
}}
"""
OPENING_RATE = 20_000.0  # first packets a second: each finds itself a port


class Nat:
    name = "nftables NAT"

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.legs: tuple[Leg, ...] = (legs.forward(spp=False),)

    def pids(self) -> list[int]:
        return []

    def start(self) -> None:
        if not shutil.which("nft"):
            raise NotRun("no nft: apt install nftables")

    def carry(self, flows: int) -> None:
        made = self._rig.relay.run(["nft", _RULES], check=False)
        if made.returncode:
            raise NotRun(f"nft: {made.stderr.strip()}")
        generator = Generator(self._rig, [(wire.from_client(4, wire.rtp()), "gen0")])
        generator.send(flows, rate=OPENING_RATE, flows=flows, in_order=True, first=0)
        generator.close()

    def keep_alive(self, flows: int) -> None: ...

    def rest(self) -> None:
        self._rig.relay.run(["nft", "delete table ip bench"], check=False)

    def stop(self) -> None: ...
