"""The packet process, composed: `python -m relayctl.packet`, started by the daemon.

It inherits the configuration, its sockets and its end of the channel as file descriptors, opens
keys and datapath, and says over the channel that it runs or why it cannot. It ends when the channel
does, so a killed daemon leaves no orphan. What it does with packets stands in `process`.
"""

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence

from relayctl.address_policy import AddressPolicy
from relayctl.channel import Channel
from relayctl.config import RelayConfig
from relayctl.datapath.base import Datapath, DatapathError
from relayctl.datapath.socket import SocketDatapath
from relayctl.datapath.spec import pin_directory
from relayctl.messages import Failed, NexthopReserved, Started
from relayctl.packet.commands import PacketCommands, read_keys
from relayctl.packet.process import PacketProcess
from relayctl.packet.sockets import RawSocket, SocketError, open_sockets
from relayctl.packet.view import PacketView, address_policy
from relayctl.peers import Peers
from relayctl.wire.address import is_v6
from relayctl.wire.route_token import KeyFileError


def _open_raw_sockets(config: RelayConfig) -> list[RawSocket]:
    if config.inner == "spp":
        return []
    return [RawSocket(v6) for v6 in {is_v6(vip.local[0]) for vip in config.vips}]


def _open_datapath(config: RelayConfig, policy: AddressPolicy) -> Datapath:
    if config.datapath == "xdp":
        from relayctl.datapath import xdp  # needs libbpf, which a laptop may not have

        return xdp.XdpDatapath.open(pin_directory(str(config.bpffs), config.instance))
    vips = {vip.public: vip.id for vip in config.vips}
    return SocketDatapath(
        config.max_flows + config.max_flows_v6,
        vips,
        policy,
        peers=Peers(config.relays()),
        inner_ports=config.inner_port_range,
    )


def _interfaces(config: RelayConfig, leg: str) -> frozenset[int]:
    names = [interface.name for interface in config.interfaces if interface.role in (leg, "both")]
    try:
        return frozenset(socket.if_nametoindex(name) for name in names)
    except OSError:
        raise SocketError(
            f"interface.name: one of {', '.join(names)} does not exist; `ip link` lists them"
        ) from None


def _compose(config: RelayConfig, channel: Channel, sockets: Sequence[int]) -> PacketProcess:
    keys = read_keys(config.keys_file)
    policy = address_policy(config)
    datapath = _open_datapath(config, policy)
    datapath.write_keys(keys)
    view = PacketView(
        config,
        datapath,
        keys,
        lambda index, way: channel.send(NexthopReserved(index, way.port, way.gateway, way.mtu)),
        policy,
    )
    return PacketProcess(
        view,
        datapath,
        open_sockets(config, sockets),
        channel,
        PacketCommands(view, datapath, channel, config.keys_file),
        raw_sockets=_open_raw_sockets(config),
        outer_interfaces=_interfaces(config, "outer"),
        inner_interfaces=_interfaces(config, "inner"),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="relayctl.packet", description=__doc__)
    parser.add_argument("--config-fd", type=int, required=True, help="JSON configuration")
    parser.add_argument("--channel-fd", type=int, required=True, help="end of the pipe")
    parser.add_argument("--socket-fds", type=int, nargs="+", required=True, help="bound sockets")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the daemon decides; its end is ours
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    channel = Channel(socket.socket(fileno=options.channel_fd))
    with open(options.config_fd) as file:
        config = RelayConfig.model_validate_json(file.read())
    try:
        process = _compose(config, channel, options.socket_fds)
    except (SocketError, KeyFileError, DatapathError) as error:
        channel.send(Failed(str(error)))
        return 1
    channel.send(Started(os.getpid()))
    gc.collect()
    gc.freeze()  # what is here stays: collections need not look at it again
    process.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
