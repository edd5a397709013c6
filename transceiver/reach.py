"""How the client of one call is reached: what its ICE agent decides is carried out here.

Checks go out, paths are owned, sent to and given back. The relay that brought the last authentic
packet of a path (its `via`) is the one we answer by; a bare datagram changes nothing.
"""

from collections.abc import Callable, Hashable

from relayctl.wire.address import Address, render
from transceiver import ice
from transceiver.mux import Mux, Peer

News = ice.Selected | ice.Away | ice.Back | ice.Dead


class Reach:
    """`tell` hears of what concerns the whole call."""

    def __init__(
        self, mux: Mux, call: Peer, agent: ice.Agent, tell: Callable[[News, float], None]
    ) -> None:
        self.agent = agent
        self._mux = mux
        self._call = call
        self._tell = tell
        self._vias: dict[Hashable, Address] = {}
        self._path: Hashable = None  # the last one selected, for reports
        self._closed = False

    def __len__(self) -> int:
        """Paths that something authentic came by."""
        return len(self._vias)

    @property
    def client(self) -> Address | None:
        """Where the client is, or was last."""
        return None if self._path is None else self._mux.framing.client(self._path)

    @property
    def vip(self) -> Address | None:
        """Where the client sends to, if the inner leg tells."""
        return None if self._path is None else self._mux.framing.vip(self._path)

    def describe(self, vip: Address) -> dict[str, object]:
        """As the control API shows it. `vip`: if the inner leg has not told the client's."""
        return {
            "client": None if self.client is None else render(self.client),
            "vip": render(self.vip or vip),
            "rtt_ms": self.agent.rtt_ms,
            "moves": self.agent.moves,
        }

    def stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> str | None:
        """Take a STUN datagram; None if it was authentic, else the reason to count."""
        drop = self.agent.receive(payload, path, self._mux.framing.client(path), now)
        if drop is None:
            self._vias[path] = via
        self._carry_out(now, via)
        return drop

    def authentic(self, path: Hashable, via: Address, now: float, *, newest: bool) -> bool:
        """SRTP or DTLS of this call came; whether that had consequences. See `Agent.media`."""
        if self._closed:
            return False
        self._vias[path] = via
        agent = self.agent
        agent.media(path, now, newest)
        if not agent.events and not agent.datagrams:
            return False
        self._carry_out(now)
        return True

    def restart(self, credentials: ice.Credentials, now: float) -> None:
        """See `Agent.restart`."""
        self.agent.restart(credentials)
        self._mux.attach(self._call, credentials.ufrag)
        self._carry_out(now)

    def lost(self, path: Hashable, now: float) -> None:
        """Another call has proven this path."""
        self.agent.forget(path, now)
        self._carry_out(now)

    def timer(self, now: float) -> None:
        if now >= self.agent.next_deadline():
            self.agent.timer(now)
            self._carry_out(now)

    def send(self, datagram: bytes) -> None:
        """Send to the client, if there is a way to it."""
        path = self.agent.selected
        via = self._vias.get(path)
        if path is not None and via is not None:
            self._mux.send(path, via, datagram)

    def close(self) -> None:
        """Nothing is told or sent any more."""
        self._closed = True
        self._vias.clear()

    def _carry_out(self, now: float, via: Address | None = None) -> None:
        """`via`: for answers on paths that the agent did not take in."""
        agent = self.agent
        datagrams, events = agent.datagrams.copy(), agent.events.copy()
        agent.datagrams.clear()
        agent.events.clear()
        for datagram, path in datagrams:
            relay = self._vias.get(path, via)
            if relay is not None:
                self._mux.send(path, relay, datagram)
        for event in events:
            if self._closed:
                return
            self._follow(event, now)

    def _follow(self, event: ice.Event, now: float) -> None:
        table = self._mux.table
        match event:
            case ice.Asked(path, transaction_id):
                table.asked(path, transaction_id, self._call)
            case ice.Settled(path, transaction_id):
                table.settled(path, transaction_id)
            case ice.Proven(path):
                loser = table.proven(path, self._call)
                if loser is not None:
                    loser.lost(path, now)
            case ice.Forgotten(path):
                table.forgotten(path, self._call)
                self._vias.pop(path, None)
            case ice.Retired(ufrag):
                table.retire(ufrag)
            case ice.Selected(path):
                self._path = path
                self._tell(event, now)
            case _:
                self._tell(event, now)
