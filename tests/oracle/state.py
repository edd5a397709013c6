"""What a relay knows when a scene begins: flows in every state, tokens, spent budgets. Pure."""

import random
from dataclasses import dataclass

from relayctl.datapath.budgets import (
    KERNEL,
    Region,
    client_bucket,
    endpoint_bucket,
    token_bucket,
)
from relayctl.flow import CONFIRMED, TO_PEER, Flow, FlowKey, peer_place
from relayctl.wire.address import Address, compact
from tests.oracle import addresses, node
from tests.oracle.node import Node
from tests.oracle.payloads import route_token
from tests.oracle.scene import NOW, Counter

_NEXTHOPS = [node.PLAIN] * 8 + list(range(len(node.NEXTHOPS) + 1))
_STRANGER = compact("198.51.100.77")  # sends from many ports that have no flow
_AGES = [0, 0, 0, 1, 4, 5, 6, 7, 30]  # of a contended stamp, units


@dataclass(frozen=True, slots=True)
class State:
    """`tokens` are authentic, but for one of an unknown key; not all lead to one of the flows."""

    flows: tuple[tuple[FlowKey, Flow], ...] = ()
    tokens: tuple[bytes, ...] = ()


def by_chance(source: random.Random, relay: Node) -> State:
    endpoints = [addresses.endpoint(source) for _ in range(6)]
    tokens = [route_token(source, each) for each in endpoints]
    flows: dict[FlowKey, Flow] = {}
    for _ in range(source.randrange(1, 9)):
        vip = source.choice(relay.vips)
        client = addresses.client(source, relay, addresses.is_v6(vip.local))
        at = source.randrange(len(endpoints))
        crosses = addresses.is_v6(endpoints[at]) != addresses.is_v6(client)
        if relay.transparent and crosses and source.random() < 0.9:
            continue  # nobody installs such a flow
        flows[FlowKey(client, vip.id)] = _flow(source, endpoints[at], tokens[at])
    if relay.has_peers:
        tokens.append(route_token(source, endpoints[0], cluster=node.BEHIND_PEERS))
        _add_peers_flows(source, relay, flows, endpoints, tokens)
    tokens += [
        route_token(source, endpoints[0], node.UNKNOWN_KEY),
        route_token(source, ("192.0.2.200", 5000)),  # nobody may go there
        route_token(source, endpoints[0], cluster=source.choice([7, 8, 9])),
    ]
    return State(tuple(flows.items()), tuple(tokens))


def _add_peers_flows(
    source: random.Random,
    relay: Node,
    flows: dict[FlowKey, Flow],
    endpoints: list[Address],
    tokens: list[bytes],
) -> None:
    """Some go by a peer, some are those of peers' clients, and a few, made by nobody, both."""
    for _ in range(source.randrange(1, 6)):
        by_peer, theirs = source.choice([(True, False), (False, True)] * 6 + [(True, True)])
        vip = source.choice(relay.theirs if theirs else relay.vips)
        client = addresses.client(source, relay, addresses.is_v6(vip.local))
        flow = _flow(source, source.choice(endpoints), source.choice(tokens))
        if theirs:
            flow = flow._replace(back=source.choice([0, 2, 2, 3, 3, 4]))
        if by_peer:
            flow = flow._replace(
                endpoint=peer_place(source.choice([2, 2, 3, 3, 4, 5]), flow.sport),
                cluster=node.BEHIND_PEERS,
                flags=flow.flags | TO_PEER,
            )
        flows[FlowKey(client, vip.id)] = flow


def _flow(source: random.Random, endpoint: Address, token: bytes) -> Flow:
    contended = NOW - source.choice(_AGES) if source.random() < 0.4 else 0
    counted = source.randrange(10) if contended else 0
    unit = (NOW - source.choice([0, 0, 0, 1])) & 0xFFFFFF
    return Flow(
        endpoint=endpoint,
        cluster=node.cluster_of(endpoint),
        sport=source.choice(node.INNER_PORTS),
        token=source.choice([token[:8], token[:8], bytes(8), b"AAAAAAAA"]),
        nexthop_in=source.choice(_NEXTHOPS),
        nexthop_out=source.choice(_NEXTHOPS),
        back=source.choice([0, 0, 3]),
        flags=source.choice([0, CONFIRMED, 0x80]),
        seen_up=source.choice([0, NOW - 3]),
        seen_down=source.choice([0, NOW - 3]),
        ssrc=source.choice([0, 77]),
        contended=contended,
        packets_up=source.choice([0, 5]),
        packets_down=source.choice([0, 5]),
        born=NOW - source.randrange(10),
        answers=unit << 8 | counted if counted else 0,
        bytes_up=source.choice([0, 1 << 33]),
        bytes_down=source.choice([0, 1 << 33]),
    )


def spent(source: random.Random, state: State) -> dict[Counter, int]:
    """Now and then a door to user space is nearly closed."""
    found: dict[Counter, int] = {}
    while source.random() < 0.4:
        region = source.choice([*Region, Region.CLIENT])
        found[region, _bucket(source, state, region)] = max(
            0, KERNEL[region] - source.choice([0, 0, 1, 3, 9])
        )
    return found


def _bucket(source: random.Random, state: State, region: Region) -> int:
    """That of somebody who takes part."""
    if region is Region.TOKEN:
        return token_bucket(source.choice(state.tokens))
    if region is Region.CLIENT:
        return client_bucket(source.choice([key.host for key, _ in state.flows] + [_STRANGER] * 2))
    if region is Region.ENDPOINT and state.flows:
        return endpoint_bucket(source.choice(state.flows)[1].endpoint)
    return 0
