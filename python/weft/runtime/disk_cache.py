"""The cache on disk of compiled programs: where its files are, their form, which are read and kept.

A directory holds one file per program, named by a hash of the *preimage*: all that decides what the
compiler makes of a program. The preimage stands in the file and is compared, so an entry is never
served for another program. What is in a file runs in the process that loads it: only files of the
user's own, that nobody else can write, in a directory of which the same is true, are read.

There are no locks. A file is written under another name and then renamed, so a reader sees all of
it or nothing; what is damaged all the same (a machine that lost power, a disk) does not have its
checksum, is removed, and the program is compiled again.
"""

import contextlib
import errno
import logging
import os
import stat
import struct
import time
import zlib

from weft.config import config

try:  # all of hashlib takes a few ms to import, for OpenSSL's libraries
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

# The name of the format comes first, then a checksum of all that follows: the lengths of what is
# told of the program (JSON), of the preimage and of the executable; the first as it is, the other
# two as one stream of zlib's.
_MAGIC = b"weft program 01\n"
_DIGEST = 32
_LENGTHS = struct.Struct("<QQQ")
_HEAD = len(_MAGIC) + _DIGEST + _LENGTHS.size
_SUFFIX = ".weft"
_UNFINISHED = ".part"
_ABANDONED_AFTER = 3600.0  # seconds: older unfinished files are those of dead processes
_TOUCH_AFTER = 60.0  # seconds in which a file that is used again does not become younger
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LEVEL = 1  # of zlib's: a fifth is left; unpacking takes a hundredth of the time to load


def _digest(data):
    return blake2b(data, digest_size=_DIGEST)


class Unusable(Exception):
    """A directory, or a file in it, that is not to be used; the message says why."""


class Damaged(Exception):
    """A file that is not what was written."""


def pack(about, preimage, executable):
    """The bytes of an entry."""
    import json  # here and below: a process that only loads programs has no use for it

    told = json.dumps(about).encode()
    stream = zlib.compressobj(_LEVEL)
    body = b"".join(
        (
            _LENGTHS.pack(len(told), len(preimage), len(executable)),
            told,
            stream.compress(preimage),
            stream.compress(executable),
            stream.flush(),
        )
    )
    return _MAGIC + _digest(body).digest() + body


def unpack(data):
    """(preimage, executable) of an entry. Raises Damaged."""
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        raise Damaged("no entry")
    body = memoryview(data)[len(_MAGIC) + _DIGEST :]
    if _digest(body).digest() != data[len(_MAGIC) : len(_MAGIC) + _DIGEST]:
        raise Damaged("its checksum is another one")
    # What has its checksum was written by `pack`, so the rest cannot fail but for errors in it.
    told, first, second = _LENGTHS.unpack_from(body)
    try:
        rest = zlib.decompressobj().decompress(body[_LENGTHS.size + told :], max(1, first + second))
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if len(rest) != first + second:
        raise Damaged("its lengths are others")
    return rest[:first], rest[first:]


def name_of(preimage):
    """The name of the file that has the program of a preimage."""
    return _digest(preimage).hexdigest() + _SUFFIX


def _check_owner(status, what):
    if status.st_uid != os.geteuid():
        raise Unusable(f"{what} is owned by user {status.st_uid}, not by {os.geteuid()}")
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise Unusable(f"others can write to {what} (mode {mode:o}; chmod go-w it)")


class Store:
    """A directory of entries. Methods raise OSError and Unusable."""

    def __init__(self, path, max_size=-1):
        self.path = path
        self._max_size = max_size

    @contextlib.contextmanager
    def _directory(self, create=False):
        """A descriptor of the directory, which is checked: what happens to the path does not matter
        any more."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            directory = os.open(self.path, flags)
        except FileNotFoundError:
            if not create:
                raise
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            directory = os.open(self.path, flags)
        try:
            _check_owner(os.fstat(directory), f"the directory {self.path}")
            yield directory
        finally:
            os.close(directory)

    @staticmethod
    def _open(directory, name, mode, flags):
        def opener(path, _):
            return os.open(path, flags, 0o600, dir_fd=directory)

        return open(name, mode, buffering=0, opener=opener)

    def _read(self, directory, name, size=-1, is_used=False):
        """The first bytes of a file, and what the system says of it."""
        # A pipe would wait for someone to write to it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._open(directory, name, "rb", flags) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unusable(f"{name} is no regular file")
            _check_owner(status, name)
            data = file.read(size)
            if is_used and time.time() - status.st_mtime > _TOUCH_AFTER:
                with contextlib.suppress(OSError):  # a disk that is read only
                    os.utime(file.fileno())
        return data, status

    def get(self, preimage):
        """The executable of a preimage, or None."""
        name = name_of(preimage)
        with contextlib.suppress(FileNotFoundError), self._directory() as directory:
            data, _ = self._read(directory, name, is_used=True)
            try:
                found, executable = unpack(data)
            except Damaged:
                self._unlink(directory, name)
                return None
            return executable if found == preimage else None
        return None

    def put(self, about, preimage, executable, min_size=0):
        """Writes an entry, and makes room for it."""
        data = pack(about, preimage, executable)
        if len(data) < min_size or 0 <= self._max_size < len(data):
            return
        name = name_of(preimage)
        part = f"{name[:16]}-{os.getpid()}-{os.urandom(8).hex()}{_UNFINISHED}"
        with self._directory(create=True) as directory:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with self._open(directory, part, "wb", flags) as file:
                    os.fchmod(file.fileno(), 0o600)  # whatever the umask is
                    left = memoryview(data)
                    while left:
                        left = left[file.write(left) :]
                os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                self._unlink(directory, part)
                raise
            # On average the directory is walked once while a sixteenth of what it may hold is
            # written, whichever processes write it.
            chance = int.from_bytes(os.urandom(4), "little") / 2**32
            if self._max_size >= 0 and chance * self._max_size < 16 * len(data):
                self._make_room(directory)

    @staticmethod
    def _unlink(directory, name):
        """True where there was such a file, and it could be removed."""
        try:
            os.unlink(name, dir_fd=directory)
            return True
        except OSError:
            return False

    def _make_room(self, directory):
        """Removes what was used least recently, and what dead processes have left."""
        found, total = [], 0
        for name, status in self._files(directory):
            if name.endswith(_SUFFIX):
                found.append((status.st_mtime, name, status.st_size))
                total += status.st_size
            elif _is_abandoned(name, status):
                self._unlink(directory, name)
        if total <= self._max_size:
            return
        wanted = self._max_size // 8 * 7
        for _, name, size in sorted(found):
            if total <= wanted:
                break
            self._unlink(directory, name)
            total -= size

    @staticmethod
    def _files(directory):
        """(name, status) of the regular files that may be ours."""
        with os.scandir(directory) as files:
            for file in files:
                if not file.name.endswith((_SUFFIX, _UNFINISHED)):
                    continue
                try:
                    status = file.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield file.name, status

    def remove(self, preimage):
        """Removes the entry of a preimage, if there is one."""
        with contextlib.suppress(FileNotFoundError), self._directory() as directory:
            self._unlink(directory, name_of(preimage))

    def sizes(self):
        """The bytes of each entry. No file is opened, so it is fast on a cold disk, too."""
        with contextlib.suppress(FileNotFoundError), self._directory() as directory:
            for name, status in self._files(directory):
                if name.endswith(_SUFFIX):
                    yield status.st_size

    def entries(self, whole=False):
        """(name, status, about, None or what is wrong with it) of all entries.

        What is told of them is read as it stands unless they are read whole, and verified.
        """
        with contextlib.suppress(FileNotFoundError), self._directory() as directory:
            for name, status in self._files(directory):
                if not name.endswith(_SUFFIX):
                    continue
                try:
                    data, status = self._read(directory, name, -1 if whole else 1 << 16)
                    if whole and name_of(unpack(data)[0]) != name:
                        raise Damaged("it is the entry of another program")
                    about = _told(data)
                except FileNotFoundError:
                    continue
                except (Damaged, Unusable, OSError) as error:
                    yield name, status, {}, error
                else:
                    yield name, status, about, None

    def clear(self, names=None):
        """Removes all entries, or those of these names; how many, and their bytes."""
        count = size = 0
        with contextlib.suppress(FileNotFoundError), self._directory() as directory:
            for name, status in list(self._files(directory)):
                if name.endswith(_SUFFIX) and (names is None or name in names):
                    if self._unlink(directory, name):
                        count += 1
                        size += status.st_size
                elif _is_abandoned(name, status):
                    self._unlink(directory, name)
        return count, size


def _is_abandoned(name, status):
    """Whether an unfinished file is that of a process which is no more."""
    return name.endswith(_UNFINISHED) and time.time() - status.st_mtime > _ABANDONED_AFTER


def _told(data):
    """What an entry tells of its program, from its beginning."""
    import json

    if len(data) < _HEAD or not data.startswith(_MAGIC):
        raise Damaged("no entry")
    length, _, _ = _LENGTHS.unpack_from(data, len(_MAGIC) + _DIGEST)
    try:
        return json.loads(data[_HEAD : _HEAD + length])
    except ValueError as error:
        raise Damaged(str(error)) from None


def location():
    """The directory, and whether the user named it. Raises Unusable or OSError where there can be
    none."""
    named = os.environ.get("WEFT_CACHE_DIR") or config.weft_compilation_cache_dir
    if named:
        if "://" in named:
            raise Unusable(f"expected a directory of this machine; got {named}")
        return os.path.abspath(named), True
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".cache")
        if not os.path.isabs(home):
            raise FileNotFoundError(errno.ENOENT, "the user has no home directory")
    return os.path.join(home, "weft"), False


_log = logging.getLogger("weft")
_told_of = set()  # the directories with which something was wrong, and is known
_not_written = set()  # those that cannot be written to


def _complain(error, path, is_named):
    """Tells of a failure, once for each directory. That the place which nobody asked for cannot be
    had is no more than worth a note: there are machines without homes."""
    if config.weft_raise_persistent_cache_errors:
        raise error
    if path in _told_of:
        return
    _told_of.add(path)
    is_odd = is_named or isinstance(error, Unusable) or getattr(error, "errno", 0) == errno.ENOSPC
    level = logging.WARNING if is_odd else logging.INFO
    where = f" in {path}" if path else ""
    _log.log(level, "Compiled programs are not kept on disk%s, or not read: %s", where, error)


def store():
    """(the directory as settings have it, whether the user named it), or None where it is off."""
    if not config.weft_enable_compilation_cache or config.weft_compilation_cache_max_size == 0:
        return None
    try:
        path, is_named = location()
    except (Unusable, OSError) as error:
        _complain(error, None, False)
        return None
    return Store(path, config.weft_compilation_cache_max_size), is_named


def find(preimage):
    """The executable of a preimage, or None; what is wrong with files is told once."""
    opened = store()
    if opened is None:
        return None
    directory, is_named = opened
    try:
        return directory.get(preimage)
    except (OSError, Unusable) as error:
        _complain(error, directory.path, is_named)
        return None


def keep(about, preimage, executable):
    """Writes an executable, unless settings or the disk are against it."""
    opened = store()
    if opened is None or opened[0].path in _not_written:
        return
    directory, is_named = opened
    try:
        min_size = config.weft_persistent_cache_min_entry_size_bytes
        directory.put(about, preimage, executable, min_size)
    except (OSError, Unusable) as error:
        _not_written.add(directory.path)
        _complain(error, directory.path, is_named)


def reset():
    """Forgets what went wrong with directories: they are tried again."""
    _told_of.clear()
    _not_written.clear()


def forget(preimage):
    """Removes the entry of a preimage: it does not load."""
    opened = store()
    if opened is not None:
        with contextlib.suppress(OSError, Unusable):
            opened[0].remove(preimage)
