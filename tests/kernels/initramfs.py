"""The guest's first root: busybox, modules and an `/init` that enters the host's tree. Pure.

The host's root is mounted read-only through virtiofs with room to write in memory over it, so the
guest runs this repository with the host's own interpreter and libraries, and changes nothing.
"""

import shlex
from collections.abc import Mapping, Sequence

from tests.kernels.cpio import File, archive

TAG = "root"  # of the shared folder
CLOSING = "/dev/ttyS1"  # the serial port of the closing line; the console is the other one

_DIRECTORIES = ("proc", "sys", "dev", "host", "room", "tree")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INIT = """\
#!/bin/busybox sh
for tool in mount mkdir insmod env poweroff; do alias $tool="/bin/busybox $tool"; done
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod $module || echo "init: $module does not load"; done
mount -t virtiofs -o ro {tag} /host
mount -t tmpfs room /room
mkdir /room/upper /room/work
mount -t overlay -o lowerdir=/host,upperdir=/room/upper,workdir=/room/work tree /tree
mount -t proc proc /tree/proc
mount -t sysfs sys /tree/sys
mount -t bpf bpf /tree/sys/fs/bpf
mount -t devtmpfs dev /tree/dev
mkdir -p /tree/dev/shm
mount -t tmpfs shm /tree/dev/shm
mount -t tmpfs run /tree/run
env -i PATH={path} HOME=/root \\
    /bin/busybox timeout -s KILL {seconds} /bin/busybox chroot /tree /bin/sh -c {command}
poweroff -f
"""


def initramfs(
    busybox: bytes, modules: Mapping[str, bytes], command: Sequence[str], cwd: str, seconds: int
) -> bytes:
    """An archive whose `/init` runs `command` in `cwd` and switches the machine off.

    `modules` are loaded in the order of their names. `seconds`: the command is killed after those.
    """
    entered = f"cd {shlex.quote(cwd)} && exec {shlex.join(command)}"
    init = _INIT.format(tag=TAG, path=_PATH, seconds=seconds, command=shlex.quote(entered))
    files = [File(f"modules/{name}", content) for name, content in modules.items()]
    return archive(
        [File("bin/busybox", busybox, 0o755), File("init", init.encode(), 0o755), *files],
        _DIRECTORIES,
    )
