from tests.kernels.series import MATRIX, Package, Series, newest, sources


def available(*packages: tuple[str, str]) -> str:
    """As `apt-cache dumpavail` writes it."""
    return "\n\n".join(
        f"Package: {name}\nSource: linux\nVersion: {version}\nDescription: Linux\n Version: 9.9.9"
        for name, version in packages
    )


def test_newest_counts_numbers_not_letters() -> None:
    listed = available(
        ("linux-image-6.1.0-9-cloud-amd64", "6.1.99-1"),
        ("linux-image-6.1.0-57-cloud-amd64", "6.1.192-3"),
        ("linux-image-6.1.0-55-cloud-amd64", "6.1.192-1"),
    )
    assert newest(listed, Series("6.1")) == Package("linux-image-6.1.0-57-cloud-amd64", "6.1.192-3")


def test_a_kernel_for_an_older_debian_is_second_choice() -> None:
    listed = available(
        ("linux-image-6.1.0-0.deb11.48-cloud-amd64", "6.1.172-1~deb11u1"),
        ("linux-image-6.1.0-48-cloud-amd64", "6.1.172-1"),
    )
    found = newest(listed, Series("6.1"))
    assert found == Package("linux-image-6.1.0-48-cloud-amd64", "6.1.172-1")


def test_neither_meta_packages_nor_other_flavours_nor_longer_series() -> None:
    listed = available(
        ("linux-image-6.1-cloud-amd64", "6.1.192-3"),
        ("linux-image-6.1.0-57-amd64", "6.1.192-3"),
        ("linux-image-6.1.0-57-cloud-amd64-dbg", "6.1.192-3"),
        ("linux-headers-6.1.0-57-cloud-amd64", "6.1.192-3"),
        ("linux-image-6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1"),
    )
    assert newest(listed, Series("6.1")) is None
    assert newest(listed, Series("6.12")) is not None


def test_release_is_the_kernels() -> None:
    assert Package("linux-image-6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1").release == (
        "6.12.117"
    )


def test_the_matrix_has_a_kernel_below_the_floor_and_the_floor() -> None:
    assert [series.version for series in MATRIX] == sorted(series.version for series in MATRIX)
    assert [series.name for series in MATRIX if series.below_floor] == ["5.10"]
    assert "6.1" in [series.name for series in MATRIX]


def test_sources_are_signed_and_complete() -> None:
    stanzas = sources().split("\n\n")
    assert len(stanzas) == 3
    assert all("Signed-By: /usr/share/keyrings/" in stanza for stanza in stanzas)
