"""Preflight checks of files and processes: route keys, run directory, a second daemon."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from relayctl.config import RelayConfig
from relayctl.doctor.result import Result, fail, ok, warn
from relayctl.wire.route_token import KeyFileError, parse_keys


def keys_file(path: Path) -> Result:
    """Readable by its owner only, and with at least one key in it."""
    name = "keys"
    try:
        text, mode = path.read_text(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return fail(name, f"no {path}", f"relayctl token keygen --id 1 --out {path}")
    except OSError as error:
        return fail(name, f"{path}: {error.strerror}", f"ls -l {path}")
    except UnicodeDecodeError as error:
        return fail(name, f"{path}: {error}", f"relayctl token keygen --id 1 --out {path}.new")
    try:
        keys = parse_keys(text)
    except KeyFileError as error:
        return fail(name, f"{path}: {error}", f"relayctl token keygen --id 1 --out {path}.new")
    if mode & 0o077:
        return warn(name, f"{path} is open to others (mode {mode:04o})", f"chmod 0600 {path}")
    return ok(name, f"{path}: key ids {', '.join(map(str, sorted(keys)))}")


def run_dir(path: Path, writable: Callable[[Path], bool] | None = None) -> Result:
    """Lock and socket live in it."""
    name, may_write = "run-dir", writable or _writable
    mend = f"install -d -m 0750 -o $(id -un) {path}"
    if path.is_dir():
        return ok(name, str(path)) if may_write(path) else fail(name, f"{path}: read-only", mend)
    if path.exists():
        return fail(name, f"{path} is no directory", f"rm {path}")
    above = next(parent for parent in path.parents if parent.exists())
    if may_write(above):
        return ok(name, f"{path} will be made")
    return fail(name, f"no {path}, and {above} is read-only", mend)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK | os.X_OK)


def second_daemon(config: RelayConfig, proc: Path) -> Result:
    name, holder = "daemon", lock_holder(config.lock_path, proc)
    if holder is None:
        return ok(name, "not running")
    return ok(name, f"{config.instance} runs as process {holder}; a second one would be refused")


def lock_holder(lock: Path, proc: Path = Path("/proc")) -> int | None:
    """Process that holds the file lock, read from the kernel's list: trying it would take it."""
    try:
        info = lock.stat()
        held = (proc / "locks").read_text().splitlines()
    except OSError:
        return None
    identity = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    for words in map(str.split, held):
        if words[1] == "FLOCK" and words[-3] == identity:
            return int(words[-4])
    return None
