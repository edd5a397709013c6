"""The archive, read back by somebody else's cpio."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kernels.cpio import File, archive

FILES = [
    File("bin/tool", b"#!tool\n", 0o755),
    File("init", b""),
    File("modules/00-a.ko", bytes(70001)),
]


def unpacked(content: bytes, directory: Path) -> dict[str, tuple[int, bytes | None]]:
    """Path → permissions and, of a file, content."""
    for command in (["cpio"], ["busybox", "cpio"]):
        if shutil.which(command[0]):
            subprocess.run(
                [*command, "-i", "-d", "-m"], input=content, cwd=directory, check=True, timeout=30
            )
            break
    else:
        pytest.skip("needs cpio or busybox")
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mode & 0o7777,
            path.read_bytes() if path.is_file() else None,
        )
        for path in directory.rglob("*")
    }


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    assert unpacked(archive(FILES, ["proc"]), tmp_path) == {
        "bin": (0o755, None),
        "bin/tool": (0o755, b"#!tool\n"),
        "init": (0o644, b""),
        "modules": (0o755, None),
        "modules/00-a.ko": (0o644, bytes(70001)),
        "proc": (0o755, None),
    }


def test_header_is_as_the_kernel_documents_it() -> None:
    content = archive([File("a", b"12345")])
    assert content.startswith(b"070701" + b"00000001" + b"000081A4")
    assert content[54:62] == b"00000005"  # file size
    assert content[94:102] == b"00000002"  # name size, with its zero
    assert content[110:112] == b"a\0"
    assert content[112:120] == b"12345\0\0\0"
    assert b"TRAILER!!!\0" in content[120:]
    assert len(content) % 4 == 0


def test_a_directory_comes_before_what_is_in_it() -> None:
    content = archive([File("deep/er/file", b"")])
    places = [content.index(name) for name in (b"deep\0", b"deep/er\0", b"deep/er/file\0")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["", ".", "/init", "../init", "a/../../b", "TRAILER!!!"])
def test_refuses_a_name_outside(name: str) -> None:
    with pytest.raises(ValueError, match="relative path"):
        archive([File(name, b"")])


def test_refuses_a_name_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        archive([File("a", b"1"), File("a", b"2")])
