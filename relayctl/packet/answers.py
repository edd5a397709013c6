"""What Redis said about orphans: flows to install, endpoints of RTP sources, nothing at all."""

import base64

from relayctl import cached_flow
from relayctl.flow import FlowKey
from relayctl.messages import Absent, Found
from relayctl.packet.actions import FromClient
from relayctl.packet.restore import Restore
from relayctl.packet.view import PacketView


class Answers:
    """Takes them in. What is returned are packets that waited for them, to be judged again."""

    def __init__(self, view: PacketView, restore: Restore) -> None:
        self._view = view
        self._restore = restore

    def found(self, message: Found, now: int) -> list[FromClient]:
        records = base64.b64decode(message.records)
        self._restore.take(records, now)
        hinted = base64.b64decode(message.hinted)
        for key, value in cached_flow.read_records(hinted):
            self._learn(key, value, now)
        if not self._view.lookups or not len(self._view.lookups):
            return []  # as in a preload
        keys = [key for key, _ in cached_flow.read_records(records + hinted)]
        return self._release(keys, now)

    def absent(self, message: Absent, now: int) -> list[FromClient]:
        return self._release(cached_flow.read_keys(base64.b64decode(message.keys)), now)

    def _learn(self, key: FlowKey, value: bytes, now: int) -> None:
        """An endpoint has to be allowed, whoever wrote it into Redis."""
        cached, lookups = cached_flow.decode(value), self._view.lookups
        if not (cached and cached.endpoint and cached.ssrc and lookups):
            return
        if self._view.owner(cached.endpoint) == cached.cluster:
            lookups.learn(key.vip, cached.ssrc, cached.endpoint, now)

    def _release(self, keys: list[FlowKey], now: int) -> list[FromClient]:
        lookups = self._view.lookups
        return [each for key in keys for each in lookups.release(key, now)] if lookups else []
