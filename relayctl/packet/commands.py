"""Carries out what the control process asks of the packet process."""

import ipaddress
import logging
import time
from pathlib import Path

from relayctl.channel import Channel
from relayctl.datapath.base import Datapath
from relayctl.flow import FlowKey, expiry
from relayctl.messages import (
    Assembly,
    DeleteFlow,
    ExpireFlow,
    HintsChange,
    Message,
    NexthopKept,
    NexthopReleased,
    OwnAddresses,
    PeersLive,
    ReloadKeys,
    RerouteFlows,
    RetireNexthop,
    RouteEntry,
    RoutesPart,
)
from relayctl.packet.actions import Install
from relayctl.packet.routing import rerouted
from relayctl.packet.view import PacketView
from relayctl.routes import Hop, Route, Routes
from relayctl.wire.route_token import Key, KeyFileError, parse_keys

log = logging.getLogger(__name__)


def read_keys(path: Path) -> dict[int, Key]:
    """Raises `KeyFileError`, which names the file and never a secret."""
    try:
        return parse_keys(path.read_text())
    except PermissionError as error:
        fault = f"{error.strerror}; let the user who runs the relay read it"
    except OSError as error:
        fault = f"{error.strerror}; make one with `relayctl token keygen`"
    except UnicodeDecodeError:
        fault = "is no text; make a key file with `relayctl token keygen`"
    except KeyFileError as error:
        fault = str(error)
    raise KeyFileError(f"keys_file = '{path}': {fault}")


class PacketCommands:
    """Changes the view and the flow table as messages say."""

    def __init__(
        self, view: PacketView, datapath: Datapath, channel: Channel, keys_file: Path
    ) -> None:
        self._view = view
        self._datapath = datapath
        self._flows = datapath.flows
        self._channel = channel
        self._keys_file = keys_file
        self._routes: Assembly[RouteEntry] = Assembly()

    def obey(self, message: Message) -> None:
        match message:
            case RoutesPart():
                self._take_routes(message)
            case HintsChange(added, removed):
                known = {ssrc: FlowKey(client, vip) for ssrc, client, vip in added}
                self._view.hints.update(known, removed)
            case ReloadKeys():
                self._reload_keys()
            case DeleteFlow(client, vip):
                key = FlowKey(client, vip)
                self._view.bury(key, time.monotonic_ns())
                self._flows.delete(key)
            case ExpireFlow(client, vip):
                self._expire(FlowKey(client, vip))
            case RerouteFlows(keys):
                for client, vip in keys:
                    self._reroute(FlowKey(client, vip))
            case OwnAddresses(hosts):
                self._view.policy.take_own(hosts)
            case PeersLive(ids):
                self._view.take_live_peers(ids)
            case RetireNexthop(index):
                retired = self._view.retire(index)
                self._channel.send((NexthopReleased if retired else NexthopKept)(index))

    def _take_routes(self, part: RoutesPart) -> None:
        entries = self._routes.add(part.generation, part.part, part.parts, part.routes)
        if entries is not None:
            self._view.take_routes(Routes(_route(entry) for entry in entries))

    def _reload_keys(self) -> None:
        try:
            keys = read_keys(self._keys_file)
        except KeyFileError as error:
            log.error("the keys in use stay: %s", error)
            return
        self._view.keys = keys
        self._datapath.write_keys(keys)

    def _expire(self, key: FlowKey) -> None:
        flow = self._flows.get(key)
        if flow is not None and expiry(flow, self._view.stamp):
            self._flows.delete(key)

    def _reroute(self, key: FlowKey) -> None:
        flow = self._flows.get(key)
        if flow is None:
            return
        for action in rerouted(key, flow, self._view):
            assert isinstance(action, Install)
            self._flows.install(action.key, action.flow)


def _route(entry: RouteEntry) -> Route:
    hops = tuple(Hop(port, gateway, mtu) for port, gateway, mtu in entry.hops)
    return Route(ipaddress.ip_network(entry.network), hops, entry.metric)
