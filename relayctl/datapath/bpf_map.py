"""A BPF map through libbpf: create, describe, read and write, entry by entry or in batches.

Keys and values are bytes. Buffers are reused, so a map belongs to one thread. Every failure raises
`BpfError`; an absent key is no failure.
"""

import ctypes
import errno
from collections.abc import Iterator

from relayctl.datapath.libbpf import BpfError, Handle, call, library, possible_cpus
from relayctl.datapath.maps import MapShape, MapType

BATCH = 4096  # entries a batch asks for at first

_ANY = ctypes.c_uint64(0)  # BPF_ANY: create or replace
_NOEXIST = ctypes.c_uint64(1)  # BPF_NOEXIST: create
_NO_PLACE = -errno.EEXIST, -errno.E2BIG


class _MapInfo(ctypes.Structure):
    """struct bpf_map_info, up to what is read here."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("key_size", ctypes.c_uint32),
        ("value_size", ctypes.c_uint32),
        ("max_entries", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_char * 16),
        ("unread", ctypes.c_uint8 * 48),
    )


class Map(Handle):
    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        info = _MapInfo()
        self.read_info(info)
        self.type = int(info.type)
        self.key_size = int(info.key_size)
        self.value_size = int(info.value_size)
        self.entries = int(info.max_entries)
        self.name = bytes(info.name).decode()
        self._stride = (self.value_size + 7) & ~7
        per_cpu = self.type == MapType.PERCPU_ARRAY
        size = self._stride * possible_cpus() if per_cpu else self.value_size
        self._value = ctypes.create_string_buffer(size)
        # looked up once: these calls are the packet process's daily bread
        self._read = library().bpf_map_lookup_elem
        self._write = library().bpf_map_update_elem
        self._remove = library().bpf_map_delete_elem

    @classmethod
    def create(cls, shape: MapShape) -> "Map":
        fd = call(
            f"create map {shape.name} ({shape})",
            "bpf_map_create",
            int(shape.type),
            shape.name.encode(),
            shape.key_size,
            shape.value_size,
            shape.entries,
            None,
        )
        return cls(fd)

    def matches(self, shape: MapShape) -> bool:
        pinned = self.type, self.key_size, self.value_size, self.entries
        return pinned == (shape.type, shape.key_size, shape.value_size, shape.entries)

    def lookup(self, key: bytes) -> bytes | None:
        result = self._read(self.fd, key, self._value)
        return self._value.raw[: self.value_size] if self._found("read", result) else None

    def lookup_per_cpu(self, key: bytes) -> list[bytes]:
        """One value per possible CPU; none if the key is absent."""
        joined = self.lookup_joined(key) or b""
        return [joined[at : at + self.value_size] for at in range(0, len(joined), self._stride)]

    def lookup_joined(self, key: bytes) -> bytes | None:
        """The value as `update` takes it: of a per-CPU map, those of all CPUs, each aligned to 8
        bytes."""
        result = self._read(self.fd, key, self._value)
        return self._value.raw if self._found("read", result) else None

    def update(self, key: bytes, value: bytes) -> None:
        """Create or replace an entry. Raises `BpfError` with E2BIG when a hash is full."""
        self._found("write", self._write(self.fd, key, value, _ANY))

    def update_if_room(self, key: bytes, value: bytes) -> bool:
        """`update`, but False when a hash is full."""
        result = self._write(self.fd, key, value, _ANY)
        return result != -errno.E2BIG and self._found("write", result)

    def add(self, key: bytes, value: bytes) -> bool:
        """Create an entry. False when there is one, or a hash is full."""
        result = self._write(self.fd, key, value, _NOEXIST)
        return result == 0 or (result not in _NO_PLACE and self._found("write", result))

    def update_batch(self, keys: bytes, values: bytes) -> int:
        """`update` of joined keys and values in one call; how many there were."""
        count = ctypes.c_uint32(len(keys) // self.key_size)
        arguments = keys, values, ctypes.byref(count), None
        call(f"write map {self.name}", "bpf_map_update_batch", self.fd, *arguments)
        return count.value

    def delete(self, key: bytes) -> bool:
        """False when there was no such entry."""
        return self._found("delete from", self._remove(self.fd, key))

    def _found(self, action: str, result: int) -> bool:
        """False for an absent key; every other failure raises `BpfError`."""
        if result == 0:
            return True
        if result != -errno.ENOENT:
            raise BpfError(f"{action} map {self.name}", -result)
        return False

    def batches(self, size: int = BATCH) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values of a hash or array, joined, some thousand entries at a time.

        Entries that change meanwhile may be seen or not. A hash bucket is read whole: where one is
        larger than the batch, the batch grows.
        """
        place = ctypes.create_string_buffer(4)  # opaque: where the next batch begins
        started = False
        while True:
            keys = ctypes.create_string_buffer(self.key_size * size)
            values = ctypes.create_string_buffer(self.value_size * size)
            count = ctypes.c_uint32(size)
            begin = place if started else None
            try:
                arguments = begin, place, keys, values, ctypes.byref(count), None
                call(f"read map {self.name}", "bpf_map_lookup_batch", self.fd, *arguments)
                last = False
            except BpfError as error:
                if error.errno == errno.ENOSPC:
                    size *= 2
                    continue
                if error.errno != errno.ENOENT:
                    raise
                last = True
            started = True
            if count.value:
                used_keys = keys.raw[: count.value * self.key_size]
                yield used_keys, values.raw[: count.value * self.value_size]
            if last:
                return

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key and value, read in batches."""
        for keys, values in self.batches():
            for at in range(len(keys) // self.key_size):
                yield (
                    keys[at * self.key_size : (at + 1) * self.key_size],
                    values[at * self.value_size : (at + 1) * self.value_size],
                )
