"""liblmdb and xxHash as the tests need them, straight through ctypes.

The oracle of the acceptance tests must share no line with Forebay, so it is LMDB's own cursor walk,
and the hash comes from libxxhash itself. The same few calls write the databases that the tests
damage, and serve as the writer that works beside a reader.
"""

import contextlib
import ctypes
import ctypes.util
import os
from dataclasses import dataclass

NOSUBDIR = 0x4000
NOSYNC = 0x10000
RDONLY = 0x20000
WRITEMAP = 0x80000
NOLOCK = 0x400000
NOTLS = 0x200000

RESERVE = 0x10000
APPEND = 0x20000
CREATE = 0x40000
INTEGERKEY = 0x08

_NEXT = 8
_FIRST = 0
_NOTFOUND = -30798


class _Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]

    @classmethod
    def of(cls, data):
        buffer = ctypes.create_string_buffer(data, len(data))
        value = cls(len(data), ctypes.cast(buffer, ctypes.c_void_p))
        value.keep_alive = buffer
        return value

    def bytes(self):
        return ctypes.string_at(self.data, self.size) if self.size else b""


def _library(name, fallback):
    return ctypes.CDLL(ctypes.util.find_library(name) or fallback)


_lmdb = _library("lmdb", "liblmdb.so.0")
_lmdb.mdb_strerror.restype = ctypes.c_char_p
_lmdb.mdb_env_set_mapsize.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_lmdb.mdb_env_close.restype = None
_lmdb.mdb_env_close.argtypes = [ctypes.c_void_p]
_lmdb.mdb_txn_abort.restype = None
_lmdb.mdb_cursor_close.restype = None
_xxhash = _library("xxhash", "libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
_xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64]


class LmdbError(Exception):
    """A call into liblmdb failed."""


def _check(code):
    if code:
        raise LmdbError(_lmdb.mdb_strerror(code).decode())


class Transaction:
    """One transaction on one (main or named) database."""

    def __init__(self, environment, write, name, flags):
        self._handle = ctypes.c_void_p()
        self._database = ctypes.c_uint()
        mode = 0 if write else RDONLY
        _check(_lmdb.mdb_txn_begin(environment, None, mode, ctypes.byref(self._handle)))
        encoded = name.encode() if name is not None else None
        try:
            _check(_lmdb.mdb_dbi_open(self._handle, encoded, flags,
                                      ctypes.byref(self._database)))
        except LmdbError:
            self.abort()
            raise

    def put(self, key, value, flags=0):
        stored_key, stored = _Value.of(key), _Value.of(value)
        _check(_lmdb.mdb_put(self._handle, self._database, ctypes.byref(stored_key),
                             ctypes.byref(stored), flags))

    def reserve(self, key, size):
        """A value of `size` bytes that nobody writes: a hole in the file."""
        stored_key, room = _Value.of(key), _Value(size, None)
        _check(_lmdb.mdb_put(self._handle, self._database, ctypes.byref(stored_key),
                             ctypes.byref(room), RESERVE))

    def delete(self, key):
        stored_key = _Value.of(key)
        _check(_lmdb.mdb_del(self._handle, self._database, ctypes.byref(stored_key), None))

    def records(self):
        """(key, address, size) of every record in key order; the bytes live as long as this."""
        cursor = ctypes.c_void_p()
        _check(_lmdb.mdb_cursor_open(self._handle, self._database, ctypes.byref(cursor)))
        key, value = _Value(), _Value()
        step = _FIRST
        try:
            while True:
                code = _lmdb.mdb_cursor_get(cursor, ctypes.byref(key), ctypes.byref(value), step)
                if code == _NOTFOUND:
                    return
                _check(code)
                yield key.bytes(), value.data, value.size
                step = _NEXT
        finally:
            _lmdb.mdb_cursor_close(cursor)

    def commit(self):
        handle, self._handle = self._handle, None
        _check(_lmdb.mdb_txn_commit(handle))

    def abort(self):
        if self._handle:
            _lmdb.mdb_txn_abort(self._handle)
            self._handle = None


class Environment:
    """An open LMDB file or directory."""

    def __init__(self, path, flags=0, map_size=1 << 30, named=64):
        self._handle = ctypes.c_void_p()
        _check(_lmdb.mdb_env_create(ctypes.byref(self._handle)))
        _check(_lmdb.mdb_env_set_maxdbs(self._handle, named))
        if not flags & RDONLY:
            _check(_lmdb.mdb_env_set_mapsize(self._handle, map_size))
            if not flags & NOSUBDIR:
                os.makedirs(path, exist_ok=True)
        try:
            _check(_lmdb.mdb_env_open(self._handle, os.fsencode(path), flags, 0o644))
        except LmdbError:
            self.close()
            raise

    @contextlib.contextmanager
    def transaction(self, write=True, name=None, flags=0):
        """Commits at the end of the block, aborts if it raises."""
        transaction = Transaction(self._handle, write, name, flags)
        try:
            yield transaction
            if write:
                transaction.commit()
        finally:
            transaction.abort()

    def close(self):
        _lmdb.mdb_env_close(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@dataclass(frozen=True)
class Record:
    """What the oracle knows of one record."""
    key: str    # hexadecimal
    bytes: int
    xxh3: str   # 16 hexadecimal digits of XXH3-64 over the value


def xxh3(data):
    return f"{_xxhash.XXH3_64bits(data, len(data)):016x}"


def xxh3_seeded(data, seed):
    return _xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def split_name(dataset):
    """("path", "name" or None) of "path#name", where both may hold further marks."""
    marks = [i for i, letter in enumerate(dataset) if letter == "#"]
    for end in [len(dataset), *reversed(marks)]:
        if os.path.exists(dataset[:end]):
            return dataset[:end], dataset[end + 1:] or None
    return dataset, None


def walk(dataset):
    """Every record of `dataset` ("path" or "path#name") by LMDB's own cursor."""
    path, name = split_name(dataset)
    flags = RDONLY | NOLOCK | (0 if os.path.isdir(path) else NOSUBDIR)
    with Environment(path, flags) as environment:
        with environment.transaction(write=False, name=name) as transaction:
            return [Record(key.hex(), size, f"{_xxhash.XXH3_64bits(address, size):016x}")
                    for key, address, size in transaction.records()]


def write(path, records, commit_every=1000, flags=NOSYNC, map_size=1 << 30, name=None):
    """Writes `records` (pairs of key and value) into a database at `path` and returns `path`."""
    records = list(records)
    with Environment(path, flags, map_size) as environment:
        for begin in range(0, max(len(records), 1), commit_every):
            with environment.transaction(name=name, flags=CREATE if name else 0) as transaction:
                for key, value in records[begin:begin + commit_every]:
                    transaction.put(key, value)
    return path
