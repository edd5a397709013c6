"""The loop of the packet process: read, decide, carry out, beat.

One blocking epoll loop over pure code, and nothing else: netlink, sweeps, metrics and the API live
in the control process. With the socket datapath every packet passes here, with XDP only those that
the kernel hands up. Composition stands in `__main__`.
"""

import base64
import itertools
import select
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from relayctl.channel import Channel, ChannelClosed
from relayctl.datapath.base import NEVER, Datapath, PackedFlows
from relayctl.datapath.socket import SocketDatapath
from relayctl.flow import FlowKey, units
from relayctl.messages import (
    PER_PART,
    Absent,
    FlowsPart,
    Found,
    FoundAll,
    Heartbeat,
    Message,
    Restored,
    Wanted,
    encode_flow,
    parts,
)
from relayctl.packet.actions import (
    Action,
    Count,
    Displace,
    Event,
    FromClient,
    FromEndpoint,
    Held,
    Install,
)
from relayctl.packet.answers import Answers
from relayctl.packet.commands import PacketCommands
from relayctl.packet.decide import STALE_NS, decide
from relayctl.packet.inbox import Datagram, Inbox
from relayctl.packet.outlets import Outlets
from relayctl.packet.restore import Restore
from relayctl.packet.rush import Rush
from relayctl.packet.sockets import PacketSocket, RawSocket
from relayctl.packet.stamp_clock import StampClock
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from relayctl.reason import PUNTS, SLOW_FROM, Reason
from relayctl.wire.address import unpack
from relayctl.wire.spp import HEADER_SIZE

BEAT_NS = 500_000_000
MESSAGES_PER_TURN = 4  # then packets have their turn: a thousand flows of Redis take 10 ms
PARTS_PER_BEAT = 64  # of the copy of the flow table that the control process gets


class PacketProcess:
    """The loop. Everything it needs comes in through the constructor."""

    def __init__(
        self,
        view: PacketView,
        datapath: Datapath,
        sockets: Sequence[PacketSocket],
        channel: Channel,
        commands: PacketCommands,
        *,
        raw_sockets: Sequence[RawSocket] = (),
        outer_interfaces: frozenset[int] = frozenset(),
        inner_interfaces: frozenset[int] = frozenset(),
    ) -> None:
        """Interfaces are those that may bring each leg, by index; none known: any may."""
        self._view = view
        self._datapath = datapath
        self._flows = datapath.flows
        self._user_path = datapath if isinstance(datapath, SocketDatapath) else None
        self._sockets = {sock.fileno(): sock for sock in sockets}
        self._outlets = Outlets(sockets, raw_sockets, view.public)
        self._upkeep = Upkeep(view, datapath.flows)
        self._upkeep.adopt()
        self._restore = Restore(view, datapath.flows, self._upkeep)
        self._lookups = view.lookups
        self._answers = Answers(view, self._restore)
        self._rush = None
        if isinstance(datapath.flows, PackedFlows) and not view.transparent:
            self._rush = Rush(view, datapath.flows, self._outlets, self._upkeep)
        self._outer_interfaces = outer_interfaces
        self._inner_interfaces = inner_interfaces
        self._channel = channel
        self._commands = commands
        self._reads = False
        self._counts = Counter(  # go on where an earlier process stopped, as the program's do
            {reason: n for reason, n in datapath.reasons().items() if n and reason >= SLOW_FROM}
        )
        self._inbox = Inbox()
        self._received = 0
        self._copy: Iterator[FlowsPart] = iter(())
        self._generation = 0
        self._epoll = select.epoll()
        self._clock = StampClock(time.time_ns(), time.monotonic_ns())

    def run(self) -> None:
        """Serve until the channel closes."""
        self._epoll.register(self._channel.fileno(), select.EPOLLIN)
        next_beat = 0
        try:
            while True:
                now = time.monotonic_ns()
                if now >= next_beat:
                    next_beat = now + BEAT_NS
                    self._beat(now)
                deadline = self._lookups.deadline() if self._lookups else None
                until = next_beat if deadline is None else min(next_beat, deadline)
                self._turn(max(0, until - now) / 1e9)
                self._look_up()
        except ChannelClosed:
            return
        finally:
            # Nobody reads from here on. The program has to drop what it would hand up at once, and
            # not when it misses the next beat: the kernel would answer "port unreachable".
            self._datapath.beat(NEVER)
            self._epoll.close()

    def _turn(self, timeout_s: float) -> None:
        if not self._reads and self._view.is_ready:
            self._reads = True  # before that packets wait in their sockets
            for fd in self._sockets:
                self._epoll.register(fd, select.EPOLLIN)
        for fd, _ in self._epoll.poll(timeout_s):
            if fd in self._sockets:
                self._drain(self._sockets[fd])
            else:
                for message in itertools.islice(self._channel.receive(), MESSAGES_PER_TURN):
                    self._obey(message)

    def _obey(self, message: Message) -> None:
        match message:
            case Found():
                now = time.monotonic_ns()
                self._judge_again(self._answers.found(message, now), now)
            case Absent():
                now = time.monotonic_ns()
                self._judge_again(self._answers.absent(message, now), now)
            case FoundAll():
                self._channel.send(Restored(self._restore.installed, self._restore.refused))
            case _:
                self._commands.obey(message)

    def _look_up(self) -> None:
        """Ask for the orphans that came, and give up those that waited long enough."""
        if self._lookups is None:
            return
        unasked = self._lookups.unasked()
        for at in range(0, len(unasked), PER_PART):
            joined = b"".join(unasked[at : at + PER_PART])
            self._channel.send(Wanted(base64.b64encode(joined).decode()))
        now = time.monotonic_ns()
        self._judge_again(self._lookups.late(now), now, Reason.SLOW_LATE)

    def _judge_again(
        self, orphans: list[FromClient], now: int, vain: Reason = Reason.SLOW_ORPHAN
    ) -> None:
        """Packets that waited; `vain`: how they count if nobody knows their client still."""
        outcomes = {Reason.SLOW_FORWARD: Reason.SLOW_CACHED, Reason.SLOW_ORPHAN: vain}
        for orphan in orphans:
            reason = self._carry_out(decide(orphan, self._view, now), now)
            if reason is not None:
                self._counts[outcomes.get(reason, reason)] += 1

    def _drain(self, sock: PacketSocket) -> None:
        now = time.monotonic_ns()
        self._clock.look(time.time_ns(), now)
        self._view.stamp = units(now)
        rush = self._rush if sock.vip else None
        datagrams = sock.receive(self._inbox)
        self._received += len(datagrams)
        for datagram in datagrams:
            received_at = self._clock.monotonic(datagram.received_at)
            is_stale = now - received_at > STALE_NS
            if is_stale and self._user_path is None:  # a start finds thousands of them
                self._counts[Reason.SLOW_STALE] += 1
                continue
            if rush and not is_stale and rush.take(datagram, sock.vip):
                continue
            self._open(rush, now)  # in the order of arrival
            self._handle(_event(sock, datagram, received_at), datagram.interface, now)
        self._open(rush, now)

    def _open(self, rush: Rush | None, now: int) -> None:
        for event in rush.open(self._counts, now) if rush else ():
            self._handle(event, 0, now)

    def _handle(self, event: Event, interface: int, now: int) -> None:
        if self._user_path is not None:
            if self._is_wrong_side(event, interface):
                self._user_path.count(Reason.DROP_WRONG_SIDE)
                return
            reason, action = self._user_path.forward(event, self._view.stamp)
            if action is not None:
                self._outlets.send(action)
                return
            if reason not in PUNTS:
                return
        outcome = self._carry_out(decide(event, self._view, now), now)
        if outcome is not None:
            self._counts[outcome] += 1

    def _is_wrong_side(self, event: Event, interface: int) -> bool:
        outer = isinstance(event, FromClient)
        allowed = self._outer_interfaces if outer else self._inner_interfaces
        return bool(allowed) and interface not in allowed

    def _carry_out(self, actions: Iterable[Action], now: int) -> Reason | None:
        """None for a packet that waits for a look-up."""
        for action in actions:
            if isinstance(action, Count):
                return action.reason
            if isinstance(action, Held):
                return None
            if isinstance(action, Install):
                if not self._flows.install(action.key, action.flow):
                    return Reason.SLOW_TABLE_FULL
                self._upkeep.installed(action.key, action.flow)
            elif isinstance(action, Displace):
                self._upkeep.displace(action.key, now)
            elif not self._outlets.send(action):
                return Reason.SLOW_SEND_FAILED
        raise AssertionError("a decision ends with its reason")

    def _beat(self, now: int) -> None:
        stamp = self._view.stamp = units(now)
        self._datapath.beat(stamp)
        self._upkeep.beat(stamp, now)
        self._view.lead_peers()
        self._datapath.write_slow_reasons(self._counts)
        reasons = self._datapath.reasons() if self._user_path is not None else {}
        self._channel.send(
            Heartbeat(
                stamp=stamp,
                received=self._received,
                socket_drops=sum(sock.drops() for sock in self._sockets.values()),
                channel_drops=self._channel.dropped,
                hints=len(self._view.hints),
                nexthop_full=self._view.nexthop_full,
                keys=tuple(self._view.keys),
                reasons={int(reason): count for reason, count in reasons.items()},
                displaced=self._upkeep.displaced,
                takeovers=len(self._view.pending),
            )
        )
        if self._user_path is not None:
            self._send_copy(self._user_path)

    def _send_copy(self, datapath: SocketDatapath) -> None:
        """Go on with the copy of the flow table, or begin the next one."""
        for sent in range(PARTS_PER_BEAT):
            part = next(self._copy, None)
            if part is None and not sent:
                self._generation += 1
                self._copy = _flow_parts(datapath, self._generation)
                part = next(self._copy, None)
            if part is None or not self._channel.send(part):
                return


def _flow_parts(datapath: SocketDatapath, generation: int) -> Iterator[FlowsPart]:
    flows = [encode_flow(key, flow) for key, flow in datapath.flows.items()]
    return (FlowsPart(generation, *part) for part in parts(flows))


def _event(sock: PacketSocket, datagram: Datagram, received_at: int) -> Event:
    payload = datagram.payload
    if sock.vip:
        return FromClient(payload, FlowKey.of(datagram.sender, sock.vip), received_at)
    header, inner = payload[:HEADER_SIZE], payload[HEADER_SIZE:]
    return FromEndpoint(header, inner, unpack(datagram.sender), sock.sport, received_at)
