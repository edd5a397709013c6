"""Compile the bench's own BPF programs and run them live."""

import ctypes
import os
import types
from collections.abc import Iterable
from pathlib import Path

from relayctl.datapath.bpf_map import Map
from relayctl.datapath.compile import SOURCE, flags
from relayctl.datapath.libbpf import Program, TestRunOptions, call

HERE = Path(__file__).parent

_LIVE_FRAMES = 1 << 1  # BPF_F_TEST_XDP_LIVE_FRAMES


class Compiled:
    """A program of ours with its maps; a context manager, or `close` it."""

    def __init__(self, text: str, entry: str, defines: Iterable[str] = ()) -> None:
        """Raises whatever BCC raises; the compiler's words are on stderr."""
        os.environ["BCC_KERNEL_SOURCE"] = str(SOURCE)  # the product's stand-in for kernel headers
        import bcc

        self._module = bcc.BPF(text=text.encode(), cflags=["-Wno-all", *flags(list(defines))])
        function = self._module.load_func(entry.encode(), bcc.BPF.XDP)
        self.program = Program(os.dup(function.fd))
        self._maps: dict[str, Map] = {}

    def map(self, name: str) -> Map:
        if name not in self._maps:
            self._maps[name] = Map(os.dup(self._module[name.encode()].map_fd))
        return self._maps[name]

    def close(self) -> None:
        for each in self._maps.values():
            each.close()
        self._maps.clear()
        self.program.close()
        self._module.cleanup()

    def __enter__(self) -> "Compiled":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()


def source(name: str) -> str:
    return (HERE / name).read_text()


def run_live(program: Program, frame: bytes, repeat: int, batch: int = 64) -> None:
    """Send `frame` through `program` `repeat` times, as real frames, on this thread's CPU.

    A verdict of XDP_REDIRECT sends it. Returns when all are sent. Raises `BpfError`.
    """
    options = TestRunOptions(
        sz=ctypes.sizeof(TestRunOptions),
        data_in=frame,
        data_size_in=len(frame),
        repeat=repeat,
        flags=_LIVE_FRAMES,
        batch_size=batch,
    )
    call("send live frames", "bpf_prog_test_run_opts", program.fd, ctypes.byref(options))
