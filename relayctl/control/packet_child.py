"""The packet process as the daemon sees it: started, heard, replaced when it hangs, and noticed
when it dies."""

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence

from relayctl.channel import Channel, ChannelClosed
from relayctl.config import RelayConfig
from relayctl.messages import Failed, Heartbeat, Message, MessageError, Started

START_S = 60.0  # taking over a table of a million flows takes some of them
STOP_S = 3.0

log = logging.getLogger(__name__)


class PacketProcessError(Exception):
    """The packet process did not start; the message is its own."""


class PacketChild:
    """The packet process, one at a time. `handle` gets every message but those of the start."""

    def __init__(
        self, config: RelayConfig, sockets: Sequence[int], handle: Callable[[Message], None]
    ) -> None:
        """`sockets`: what it reads from, in the order of `open_sockets`. They outlive it."""
        self._config = config
        self._sockets = sockets
        self._handle = handle
        self._closed = asyncio.Event()
        self._dropped = 0  # of the runs before this one
        self._prepare()

    def _prepare(self) -> None:
        self._channel, self._theirs = Channel.pair()
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._process: asyncio.subprocess.Process | None = None
        self.heartbeat: Heartbeat | None = None
        self._heard_at = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def dropped(self) -> int:
        """Messages to the packet process that found the pipe full."""
        return self._dropped + self._channel.dropped

    def silent_s(self) -> float:
        """Seconds since its last heartbeat; infinite before the first."""
        return time.monotonic() - self._heard_at if self.heartbeat else float("inf")

    def send(self, message: Message) -> bool:
        return self._channel.send(message)

    def has_room(self) -> bool:
        """Whether it takes a message now."""
        return self._channel.has_room()

    async def start(self) -> None:
        """Returns when its maps are open and its keys read. Raises `PacketProcessError`."""
        config_fd = _in_memory(self._config.model_dump_json(by_alias=True))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "relayctl.packet"),
                *("--config-fd", str(config_fd), "--channel-fd", str(self._theirs.fileno())),
                *("--socket-fds", *map(str, self._sockets)),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(config_fd, self._theirs.fileno(), *self._sockets),
            )
        finally:
            os.close(config_fd)
            self._theirs.close()
        asyncio.get_running_loop().add_reader(self._channel.fileno(), self._read)
        try:
            await asyncio.wait_for(self._started, START_S)
        except TimeoutError:
            raise PacketProcessError(f"the packet process said nothing for {START_S} s") from None

    async def died(self) -> str:
        """Returns how, once it is gone."""
        await self._closed.wait()
        return await self._exit_status()

    async def replace(self) -> None:
        """Kill it and start another, which finds maps and program as they are.

        Raises `PacketProcessError`, also when the kernel does not let the old one go.
        """
        self._hang_up()
        assert self._process
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            raise PacketProcessError(
                f"the packet process {self.pid} hangs in the kernel and cannot be killed"
            ) from None
        self._dropped += self._channel.dropped
        self._prepare()
        await self.start()

    async def stop(self) -> None:
        """Close the channel, which ends it; kill it if it does not."""
        self._hang_up()
        await self._exit_status()

    def _hang_up(self) -> None:
        if self._channel.fileno() >= 0:  # not in the midst of a replacement
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()

    async def _exit_status(self) -> str:
        if self._process is None:
            return "was never started"
        try:
            code = await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            code = await self._process.wait()
        return f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"

    def _read(self) -> None:
        try:
            for message in self._channel.receive():
                self._take(message)
        except ChannelClosed:
            self._end("the packet process died while starting; its own words stand above")
        except MessageError as error:
            log.error("the packet process sends something else than messages: %s", error)
            self._end(str(error))

    def _take(self, message: Message) -> None:
        match message:
            case Started():
                self._started.set_result(None)
            case Failed(reason):
                self._started.set_exception(PacketProcessError(reason))
            case Heartbeat():
                self.heartbeat = message
                self._heard_at = time.monotonic()
        self._handle(message)

    def _end(self, reason: str) -> None:
        asyncio.get_running_loop().remove_reader(self._channel.fileno())
        if not self._started.done():
            self._started.set_exception(PacketProcessError(reason))
        self._closed.set()


def _in_memory(text: str) -> int:
    """A file descriptor to read `text` from."""
    fd = os.memfd_create("relay-config")
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
