"""The relay's daemon: composes the control process, starts it and stops it in reverse order.

Order of start: lock, keys, sockets, program and maps, the packet process, nexthops, and only then
the program goes onto the interfaces. On a clean stop it stays there and flows go on: a
restart adopts everything, `relayctl unload` removes it.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from relayctl.config import RelayConfig
from relayctl.control.api import create_app
from relayctl.control.due_flows import DueFlows
from relayctl.control.flow_cache import FlowCache
from relayctl.control.http_server import HttpServer, HttpServerError, listen_tcp, listen_unix
from relayctl.control.instance_lock import InstanceLock, LockError
from relayctl.control.kernel_side import KernelSide
from relayctl.control.netlink import ADDRESS_GROUPS, Events, Kernel
from relayctl.control.own_addresses import AddressTeller
from relayctl.control.packet_child import PacketChild, PacketProcessError
from relayctl.control.peers import PeerWatch
from relayctl.control.preload import Preload
from relayctl.control.reattach import keep_attached
from relayctl.control.relay import Relay, stamp
from relayctl.control.sweeper import Pass, Sweeper
from relayctl.control.watchdog import Watchdog
from relayctl.datapath.base import NEVER, Datapath, DatapathError
from relayctl.datapath.mirror import MirrorDatapath
from relayctl.flow import Prefixes
from relayctl.messages import (
    PREFIX,
    Assembly,
    ExpireFlow,
    FlowsPart,
    Heartbeat,
    Message,
    NexthopKept,
    NexthopReleased,
    NexthopReserved,
    ReloadKeys,
    Restored,
    Wanted,
    decode_flow,
)
from relayctl.packet.commands import read_keys
from relayctl.packet.sockets import SocketError, open_sockets
from relayctl.reason import Reason
from relayctl.wire import redis_client
from relayctl.wire.redis_client import Client, RedisOptionError, open_redis
from relayctl.wire.route_token import KeyFileError

CONNECTIONS = 8  # to Redis, or to each node of a Cluster

log = logging.getLogger(__name__)

_START_FAULTS = (
    LockError,
    KeyFileError,
    SocketError,
    DatapathError,
    PacketProcessError,
    HttpServerError,
    RedisOptionError,
)


def run(config: RelayConfig) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, else 1."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with InstanceLock(config.lock_path):
            return asyncio.run(_Daemon(config).run())
    except _START_FAULTS as fault:
        log.error("%s", fault)
        return 1


class _Daemon:
    """The control process of one run."""

    def __init__(self, config: RelayConfig) -> None:
        self._config = config
        self._stop = asyncio.Event()
        self._mirror: MirrorDatapath | None = None
        self._copy: Assembly[str] = Assembly()
        self._kernel: KernelSide | None = None
        self._preload: Preload | None = None
        self._redis: Client | None = None
        self._cache: FlowCache | None = None

    async def run(self) -> int:
        read_keys(self._config.keys_file)  # before anything is touched
        async with contextlib.AsyncExitStack() as stack:
            sockets = open_sockets(self._config)
            for sock in sockets:
                stack.callback(sock.close)  # when the program hands nothing up any more
            self._child = PacketChild(self._config, [sock.fileno() for sock in sockets], self._hear)
            self._catch_signals()
            datapath = await self._open_datapath(stack)
            stack.push_async_callback(self._child.stop)
            await self._child.start()
            if self._kernel:
                await self._kernel.nexthops.start()
            self._open_redis(stack)
            sweeper = self._sweeper(datapath)
            addresses = AddressTeller(
                stack.enter_context(contextlib.closing(Events(ADDRESS_GROUPS))),
                stack.enter_context(contextlib.closing(Kernel())),
                self._child.send,
            )
            peers = PeerWatch(self._config.peers, self._child.send)
            watchdog = Watchdog(self._child, lambda: self._acquaint(sweeper, addresses))
            is_empty = next(datapath.flows.batches(), None) is None
            preload = self._preload = self._make_preload()
            relay = self._relay(datapath, sweeper, watchdog, peers)
            servers = await stack.enter_async_context(self._serving(relay))
            if self._kernel:
                self._kernel.attach()
                relay.attached_as(datapath.name)
            log.info("relay %s serves with datapath %s", self._config.instance, relay.name)
            tasks = [sweeper.run(self._is_loading), watchdog.run(), addresses.run()]
            if self._config.peers:
                tasks.append(peers.run())
            if preload:
                tasks.append(preload.serve(is_empty, datapath.reasons))
            if self._cache:
                tasks.append(self._cache.run())
            if self._kernel:
                tasks.append(self._kernel.nexthops.run())
                tasks.append(keep_attached(self._config, self._kernel))
            return await self._until_stopped([*tasks, *servers])

    async def _open_datapath(self, stack: contextlib.AsyncExitStack) -> Datapath:
        if self._config.datapath == "xdp":
            self._kernel = await KernelSide.load(self._config, self._child.send)
            stack.callback(self._kernel.close)
            return self._kernel.datapath
        self._mirror = MirrorDatapath(
            self._config.max_flows + self._config.max_flows_v6,
            lambda key: self._child.send(ExpireFlow(key.client, key.vip)),
        )
        return self._mirror

    def _sweeper(self, datapath: Datapath) -> Sweeper:
        nexthops = self._kernel.nexthops if self._kernel else None

        def swept(found: Pass) -> None:
            if nexthops:
                nexthops.swept(found.used)

        return Sweeper(
            datapath,
            self._child.send,
            stamp,
            lambda: (nexthops.routes, nexthops.entries) if nexthops else None,
            swept,
            self._prefixes(),
            self._cache,
        )

    def _prefixes(self) -> Prefixes:
        return {
            section.id: section.prefix.network_address.packed[:PREFIX]
            for section in self._config.clusters
        }

    def _acquaint(self, sweeper: Sweeper, addresses: AddressTeller) -> None:
        """Tell a new packet process what the old one knew."""
        sweeper.forget_hints()
        addresses.forget()
        if self._kernel:
            self._kernel.nexthops.republish()

    def _open_redis(self, stack: contextlib.AsyncExitStack) -> None:
        """Whoever uses it sets the deadlines."""
        if self._config.redis is None:
            return
        try:
            redis = open_redis(self._config.redis, connections=CONNECTIONS)
        except RedisOptionError as error:
            raise RedisOptionError(f"redis: {error}") from None
        stack.push_async_callback(redis_client.close, redis)
        self._redis = redis
        due = DueFlows(self._prefixes(), stamp())
        self._cache = FlowCache(redis, due, self._child.send, stamp)

    def _make_preload(self) -> Preload | None:
        if self._redis is None:
            return None
        vips = [vip.id for vip in self._config.vips]
        return Preload(self._redis, vips, self._child.send, self._takes_flows)

    def _is_loading(self) -> bool:
        """Whether flows of Redis fill an empty table, which is work enough for both processes."""
        return self._preload is not None and self._preload.is_loading

    def _takes_flows(self) -> bool:
        """Flows need routes, which go through the same pipe."""
        return self._child.has_room() and (not self._kernel or self._kernel.nexthops.is_published)

    def _relay(
        self, datapath: Datapath, sweeper: Sweeper, watchdog: Watchdog, peers: PeerWatch
    ) -> Relay:
        kernel = self._kernel
        return Relay(
            self._config,
            datapath,
            self._child,
            sweeper,
            kernel,
            kernel.datapath.attached if kernel else list,
            lambda: watchdog.replacements,
            self._is_loading,
            peers,
            self._cache,
        )

    @contextlib.asynccontextmanager
    async def _serving(self, relay: Relay) -> AsyncIterator[list[Coroutine[Any, Any, None]]]:
        """The servers' coroutines, to be run; their sockets are open already."""
        sockets = [listen_tcp(self._config.admin), listen_unix(self._config.socket_path)]
        servers = [HttpServer(create_app(relay, writable=writable)) for writable in (False, True)]
        serving = [
            server.serve(sockets=[sock]) for server, sock in zip(servers, sockets, strict=True)
        ]
        try:
            yield serving
        finally:
            for coroutine in serving:
                coroutine.close()  # of a start that failed, they never ran
            for sock in sockets:
                sock.close()
            self._config.socket_path.unlink(missing_ok=True)

    async def _until_stopped(self, coroutines: list[Coroutine[Any, Any, None]]) -> int:
        """Run everything until the stop signal. 1 when something ended before that."""
        stop = asyncio.create_task(self._stop.wait())
        died = asyncio.create_task(self._child.died())
        tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
        await asyncio.wait([stop, died, *tasks], return_when=asyncio.FIRST_COMPLETED)
        code = 0 if self._stop.is_set() else 1
        if died.done():
            if self._kernel:
                self._kernel.datapath.beat(NEVER)  # it could not say so itself
            log.error("the packet process %s; the daemon ends with it", died.result())
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception():
                log.error("the daemon ends: a part of it failed", exc_info=task.exception())
        everything: list[asyncio.Task[Any]] = [stop, died, *tasks]
        for each in everything:
            each.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        return code

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload_keys)

    def _end(self) -> None:
        """Stop; asked again, at once: whatever is left over, the next start copes with."""
        if self._stop.is_set():
            os._exit(0)
        self._stop.set()

    def _reload_keys(self) -> None:
        try:
            keys = read_keys(self._config.keys_file)
        except KeyFileError as fault:
            log.error("the keys in use stay: %s", fault)
            return
        if self._child.send(ReloadKeys()):
            log.info("route keys read again: ids %s", ", ".join(map(str, sorted(keys))))
        else:
            log.error("the packet process does not take commands; send SIGHUP again")

    def _hear(self, message: Message) -> None:
        """A message of the packet process."""
        match message:
            case Heartbeat() if self._mirror:
                self._mirror.beat(message.stamp)
                self._mirror.write_slow_reasons(
                    {Reason(number): count for number, count in message.reasons.items()}
                )
            case FlowsPart(generation, part, count, flows) if self._mirror:
                copy = self._copy.add(generation, part, count, flows)
                if copy is not None:
                    self._mirror.flows.replace(map(decode_flow, copy))
            case NexthopReserved(index, port, gateway, mtu) if self._kernel:
                self._kernel.nexthops.reserved(index, port, gateway, mtu)
            case NexthopReleased(index) if self._kernel:
                self._kernel.nexthops.released(index)
            case Wanted() if self._cache:
                self._cache.hear(message)
            case Restored() if self._preload:
                self._preload.heard(message)
            case NexthopKept(index) if self._kernel:
                self._kernel.nexthops.kept(index)
