"""Compile the bench's own BPF programs, run them live, write maps in batches."""

import ctypes
import os
import types
from collections.abc import Iterable
from pathlib import Path

from relayctl.datapath.bpf_map import Map
from relayctl.datapath.compile import SOURCE, flags
from relayctl.datapath.libbpf import Program, call

HERE = Path(__file__).parent
BATCH = 1 << 15  # entries of one batched write

_LIVE_FRAMES = 1 << 1  # BPF_F_TEST_XDP_LIVE_FRAMES


class _RunOptions(ctypes.Structure):
    """struct bpf_test_run_opts"""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_char_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


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
    options = _RunOptions(
        sz=ctypes.sizeof(_RunOptions),
        data_in=frame,
        data_size_in=len(frame),
        repeat=repeat,
        flags=_LIVE_FRAMES,
        batch_size=batch,
    )
    call("send live frames", "bpf_prog_test_run_opts", program.fd, ctypes.byref(options))


def update_batch(target: Map, keys: bytes, values: bytes) -> None:
    """Create or replace entries, joined keys and joined values."""
    count = len(keys) // target.key_size
    for at in range(0, count, BATCH):
        some = min(BATCH, count - at)
        part_keys = keys[at * target.key_size : (at + some) * target.key_size]
        part_values = values[at * target.value_size : (at + some) * target.value_size]
        counter = ctypes.c_uint32(some)
        call(
            f"write map {target.name}",
            "bpf_map_update_batch",
            target.fd,
            part_keys,
            part_values,
            ctypes.byref(counter),
            None,
        )
