"""Makes programs and libraries that were linked on Debian 12 run on older systems, too.

For each function of glibc that a file uses, the linker writes the newest version under which this
machine's glibc has the function, such as `pthread_create@GLIBC_2.34`. glibc 2.34 moved that
function from libpthread to libc, and so gave the function a new version. The function is still the
same as the older `pthread_create@GLIBC_2.2.5`, or `@GLIBC_2.17` on aarch64. So only the version is
changed in the file. The machine code stays as it is.

A wheel brings its own libstdc++. The names of the versions of this libstdc++ are changed. So the
loader never confuses its symbols with those of the system's libstdc++.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

# The newest glibc that the changed files may need: that of Debian 11 and Ubuntu 20.04.
OLDEST_GLIBC = (2, 31)

# Functions whose older version is another function. The older function is good enough, for the
# reasons that are given here.
_OLDER_SERVES = {
    # Since 2.29 these functions set errno in another way, and nothing in the wheel reads their
    # errno. Both versions compute with the same code, which is that of 2.28.
    *("exp", "exp2", "log", "log2", "pow"),
    # Before 2.34 pthread_kill() returned ESRCH for a thread that had ended. In the wheel, only
    # OpenLDAP uses pthread_kill().
    "pthread_kill",
}

# Beginnings of the names of libstdc++'s versions, and what replaces them. Old and new name have the
# same length, because the name is changed in place.
_STDCXX_NAMES = {b"GLIBCXX_": b"SYSTOLE_", b"CXXABI_": b"SYSABI_"}

# The version number of a symbol that names no version. The loader binds such a symbol to the
# library's default version of the symbol, or to the first version that the library has.
_UNVERSIONED = 1  # VER_NDX_GLOBAL

_GLOBAL, _UNIQUE = 1, 10  # STB_GLOBAL, STB_GNU_UNIQUE
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym


class Symbol(NamedTuple):
    name: str
    place: int  # The offset of its entry in the file, in bytes.
    binding: int
    defined: bool
    address: int
    version: int  # The number of its version in this file.
    version_place: int | None


class Glibc:
    """The versions and addresses of this machine's glibc, and the symbols of newer_glibc.c."""

    def __init__(self, libraries: list[Path], replacement: Path) -> None:
        self._definitions: dict[str, dict[str, int]] = {}
        for library in libraries:
            file = _File(library)
            for symbol in file.symbols():
                version = file.definitions.get(symbol.version & 0x7FFF)
                if symbol.defined and version is not None:
                    self._definitions.setdefault(symbol.name, {})[version] = symbol.address
        versions = {version for versions in self._definitions.values() for version in versions}
        # GLIBC_2.2.5 on x86-64, GLIBC_2.17 on aarch64.
        self._first = min((name for name in versions if name.startswith("GLIBC_2.")), key=_number)
        self.replaced = {symbol.name for symbol in _File(replacement).symbols() if symbol.defined}

    def older_version(self, name: str, version: str) -> str | None:
        """The newest version of `name`, up to OLDEST_GLIBC, that can replace `version`: the same
        function, or any version if `name` is in _OLDER_SERVES. None: there is no such version."""
        older = [
            other
            for other in self._definitions.get(name, {})
            if not is_newer(other)
            and (self._are_same(name, other, version) or name in _OLDER_SERVES)
        ]
        return max(older, key=_number, default=None)

    def may_lose_version(self, name: str, version: str) -> bool:
        """Whether the loader binds `name` to the function of `version` if the file names no
        version."""
        versions = self._definitions.get(name, {})
        return self._first not in versions or self._are_same(name, self._first, version)

    def _are_same(self, name: str, version: str, other: str) -> bool:
        versions = self._definitions.get(name, {})
        return versions.get(version) == versions.get(other)


def is_newer(version: str) -> bool:
    """Whether OLDEST_GLIBC lacks this version. False for versions of other libraries."""
    return version.startswith("GLIBC_2.") and _number(version) > OLDEST_GLIBC


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def change_versions(path: Path, glibc: Glibc) -> bool:
    """Changes the file. Returns whether the changed file needs the library of newer_glibc.c, or a
    library that newer_glibc.c needs, such as libpthread. Raises ValueError if the file needs
    a symbol of a newer glibc that newer_glibc.c lacks and that has no older version to use.

    Symbols that are unique in a process become ordinary symbols. Otherwise the libstdc++ in the
    wheel would share some of its variables with the system's libstdc++, which may be another
    release.
    """
    file = _File(path)
    changed = False
    for symbol in file.symbols():
        if symbol.binding == _UNIQUE:
            file.set_binding(symbol, _GLOBAL)
        version = file.needs.get(symbol.version)
        if version is None or not is_newer(version):
            continue
        number = _UNVERSIONED
        if symbol.name not in glibc.replaced:
            older = glibc.older_version(symbol.name, version)
            # The loader looks for a versioned symbol in all libraries. So the older version may be
            # one that this file lists for another library.
            numbers = [other for other, name in file.needs.items() if name == older]
            if numbers:
                number = numbers[0]
            elif older is None or not glibc.may_lose_version(symbol.name, version):
                raise ValueError(f"{path}: {symbol.name} needs {version}; newer_glibc.c lacks it")
        file.set_version(symbol, number)
        changed = True
    file.forget_newer_versions()
    file.rename_versions()
    path.write_bytes(file.data)
    return changed


class _File:
    """A 64-bit ELF file, whose bytes are changed in place."""

    def __init__(self, path: Path) -> None:
        self.data = bytearray(path.read_bytes())
        with path.open("rb") as file:
            elf = ELFFile(file)
            # Each section's offset, size and number of entries.
            self._sections = {
                section.name: (section["sh_offset"], section["sh_size"], section["sh_info"])
                for section in elf.iter_sections()
            }
        # The versions that this file needs, and those that it defines, by their numbers. A symbol
        # has the number of its version.
        self.needs: dict[int, str] = {}
        self.definitions: dict[int, str] = {}
        # The places of each version's hash and name (Elf64_Vernaux, Elf64_Verdef with
        # Elf64_Verdaux).
        self._names: list[tuple[int, int]] = []
        # For each library that is needed, its place (Elf64_Verneed) and the places of its versions
        # (Elf64_Vernaux).
        self._libraries: list[tuple[int, list[int]]] = []
        self._read_needs()
        self._read_definitions()

    def symbols(self) -> Iterator[Symbol]:
        begin, size, _ = self._sections[".dynsym"]
        versions = self._sections.get(".gnu.version")
        for index in range(size // _SYMBOL.size):
            place = begin + index * _SYMBOL.size
            name, info, _, section, address, _ = _SYMBOL.unpack_from(self.data, place)
            version_place = None if versions is None else versions[0] + 2 * index
            version = _UNVERSIONED if version_place is None else self._read("<H", version_place)[0]
            yield Symbol(
                self._string(name), place, info >> 4, section != 0, address, version, version_place
            )

    def set_binding(self, symbol: Symbol, binding: int) -> None:
        self.data[symbol.place + 4] = binding << 4 | self.data[symbol.place + 4] & 0xF

    def set_version(self, symbol: Symbol, version: int) -> None:
        assert symbol.version_place is not None
        struct.pack_into("<H", self.data, symbol.version_place, version)

    def forget_newer_versions(self) -> None:
        """Removes the versions that OLDEST_GLIBC lacks from the lists of needed versions."""
        for library, places in self._libraries:
            names = [self.needs[self._read("<H", place + 6)[0]] for place in places]
            kept = [place for place, name in zip(places, names, strict=True) if not is_newer(name)]
            if len(kept) == len(places):
                continue
            assert kept, "the file needs only newer versions of a library"
            struct.pack_into("<H", self.data, library + 2, len(kept))
            struct.pack_into("<I", self.data, library + 8, kept[0] - library)
            for place, following in zip(kept, [*kept[1:], kept[-1]], strict=True):
                struct.pack_into("<I", self.data, place + 12, following - place)

    def rename_versions(self) -> None:
        """Renames libstdc++'s versions as _STDCXX_NAMES says."""
        begin, _, _ = self._sections[".dynstr"]
        for hash_place, name_place in self._names:
            [name] = self._read("<I", name_place)
            for old, new in _STDCXX_NAMES.items():
                # Versions may share a string, so the string may have its new name already.
                if self.data.startswith((old, new), begin + name):
                    self.data[begin + name : begin + name + len(new)] = new
                    struct.pack_into("<I", self.data, hash_place, _hash(self._string(name)))

    def _read(self, form: str, place: int) -> tuple[int, ...]:
        return struct.unpack_from(form, self.data, place)

    def _string(self, offset: int) -> str:
        begin = self._sections[".dynstr"][0] + offset
        return self.data[begin : self.data.index(0, begin)].decode()

    def _read_needs(self) -> None:
        library, _, count = self._sections.get(".gnu.version_r", (0, 0, 0))
        for _ in range(count):
            _, versions, _, first, next_library = self._read("<HHIII", library)
            places = []
            place = library + first
            for _ in range(versions):
                _, _, number, name, next_version = self._read("<IHHII", place)
                self.needs[number] = self._string(name)
                self._names.append((place, place + 8))
                places.append(place)
                place += next_version
            self._libraries.append((library, places))
            library += next_library

    def _read_definitions(self) -> None:
        place, _, count = self._sections.get(".gnu.version_d", (0, 0, 0))
        for _ in range(count):
            _, _, number, names, _, first, following = self._read("<HHHHIII", place)
            [name] = self._read("<I", place + first)
            self.definitions[number] = self._string(name)
            self._names.append((place + 8, place + first))
            place += following


def _hash(name: str) -> int:
    """The hash of a version's name (System V ABI, "Hash Table")."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value
