"""One daemon per instance: a lock file that names the daemon's process."""

import fcntl
import os
from pathlib import Path
from types import TracebackType


class LockError(Exception):
    """The instance cannot be locked; the message names the file, who has it, and the mend."""


class InstanceLock:
    """Held from `__enter__` to `__exit__`; the kernel lets go of it when the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> "InstanceLock":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LockError(
                f"run_dir = '{self._path.parent}': {error.strerror}; "
                "create it, or set another that this user can write to"
            ) from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise LockError(
                f"instance '{self._path.stem}' is already served by process {owner} "
                f"({self._path}); stop it, or choose another instance name"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The file stays: removing it would let two daemons lock two files of one name."""
        os.close(self._fd)
