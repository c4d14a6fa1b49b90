"""Checkpoints: what `weft.checkpoints` has. The layout is that of docs/checkpoints.md.

Nothing under its final name is ever incomplete: a checkpoint is written to another directory, which
gets its name when all of it is on the disk.
"""

import atexit
import json
import os
import re
import shutil
import sys
import threading
import traceback
import zlib
from typing import Any

import numpy as np

from weft import _core
from weft._manifest import (
    as_bits,
    chunk_shape,
    described,
    from_bits,
    has_elements,
    leaf_record,
    python_value,
    storage_dtype,
    tree_of,
)
from weft.dtypes import is_key
from weft.errors import TreeStructureError
from weft.random import wrap_key_data
from weft.runtime import processes as _processes
from weft.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

_FORMAT = 1
_MANIFEST = "manifest.json"
_INCOMPLETE = ".incomplete-"
_TIMEOUT = 1200.0  # seconds that processes wait for one another
_last = None  # the Save that was begun last


def _tensorstore():
    try:
        import tensorstore
    except ImportError:
        raise ImportError(
            "weft.checkpoints needs the package tensorstore; install weft[checkpoints]"
        ) from None
    return tensorstore


def all_steps(directory: str | os.PathLike[str]) -> list[int]:
    """The steps of the checkpoints in a directory, a sorted list; empty if there is none.

    Examples:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> for step in (5, 10):
      ...     saving = weft.checkpoints.save(folder, wnp.ones(2), step=step)
      >>> weft.checkpoints.all_steps(folder)
      [5, 10]
    """
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    return sorted(
        int(name)
        for name in names
        if re.fullmatch(r"0|[1-9]\d*", name)
        and os.path.exists(os.path.join(directory, name, _MANIFEST))
    )


def latest_step(directory: str | os.PathLike[str]) -> int | None:
    """The last step of the checkpoints in a directory; None if there is none.

    Examples:
      >>> import tempfile
      >>> weft.checkpoints.latest_step(tempfile.mkdtemp()) is None
      True
    """
    steps = all_steps(directory)
    return steps[-1] if steps else None


class Save:
    """A checkpoint that is being written, or was. Attributes: directory, step."""

    def __init__(self, directory, step):
        self.directory = directory
        self.step = step
        self._done = threading.Event()
        self._error = None
        self._seen = False

    def done(self):
        """Whether it is on disk, or has failed."""
        return self._done.is_set()

    def wait(self):
        """Waits until it is on disk. Raises what went wrong, if anything did.

        Examples:
          >>> import tempfile
          >>> saving = weft.checkpoints.save(tempfile.mkdtemp(), 7, step=0, asynchronous=True)
          >>> saving.wait()
          >>> saving.done()
          True
        """
        self._done.wait()
        self._seen = True
        if self._error is not None:
            raise self._error

    def _run(self, write):
        try:
            write()
        except BaseException as error:
            self._error = error
        self._done.set()

    def __repr__(self):
        state = "failed" if self._error else "done" if self.done() else "being written"
        return f"Save(directory={self.directory!r}, step={self.step}, {state})"


def save(
    directory: str | os.PathLike[str],
    tree: Any,
    step: int,
    *,
    keep: int | None = None,
    asynchronous: bool = False,
) -> Save:
    """Writes a tree to a directory as the checkpoint of a step. Returns a Save.

    When the process ends at any moment, the checkpoints that were there before can be read, and
    this one is there whole or not at all. With several processes all of them call this with the
    same `directory`, on a file system that they share, and each writes the parts of arrays that it
    has; of what is on devices of one process only, and of other leaves, those of process 0 count.

    Args:
      directory: a path; it is made if there is none.
      tree: arrays of weft and NumPy, random keys, numbers, strings and bytes, in dicts, lists,
        tuples and registered classes.
      step: an integer, at least 0.
      keep: how many checkpoints stay: older ones are deleted when this one is on disk. None keeps
        all.
      asynchronous: return as soon as the values are copied; `wait` of the result tells of errors,
        and so does the next `save`, which waits for this one.

    Raises TypeError for leaves that cannot be saved, FileExistsError if there is a checkpoint of
    the step, ProcessFailureError if another process has failed.

    Examples:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> saving = weft.checkpoints.save(folder, {"w": wnp.ones(2)}, step=3)
      >>> weft.checkpoints.restore(folder)
      {'w': Array([1., 1.], dtype=float32)}
    """
    global _last
    _tensorstore()
    if isinstance(step, bool) or not hasattr(step, "__index__") or step.__index__() < 0:
        raise ValueError(f"checkpoints.save expected an integer step >= 0; got {step!r}")
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise ValueError(f"checkpoints.save expected keep >= 1 or None; got {keep!r}")
    step = step.__index__()
    directory = os.path.abspath(directory)
    if _last is not None and not _last._seen:
        _last.wait()
    final = os.path.join(directory, str(step))
    joined = _processes.joined()
    number = 0 if joined is None else joined.process_id
    if os.path.exists(final):
        raise FileExistsError(
            f"checkpoints.save: there is a checkpoint {final}\n"
            "  Save with another step, or delete that folder first."
        )
    paths, treedef = tree_flatten_with_path(tree)
    records, writes = [], []
    for i, (path, leaf) in enumerate(paths):
        record, array = leaf_record(leaf, f"checkpoints.save: tree{keystr(path)}")
        records.append({"path": keystr(path), **record})
        if array is not None and has_elements(record):
            parts = list(_parts(array, number, asynchronous))
            writes.append((f"arrays/{i}", array.shape, array.dtype, _layout(array), parts))
    manifest = {
        "format": _FORMAT,
        "step": step,
        "tree": described(tree_unflatten(treedef, range(len(paths)))),
        "leaves": records,
    }
    begun = Save(directory, step)
    _last = begun

    def write():
        _write(final, manifest, writes, keep, joined, number)

    if asynchronous:
        threading.Thread(target=begun._run, args=(write,), name="weft-checkpoint").start()
    else:
        begun._run(write)
        begun.wait()
    return begun


def _parts(array, number, copied):
    """(index, value) of what this process writes of an array: each element is one process's."""
    if isinstance(array, np.ndarray) or array.is_fully_addressable:
        shards = [((slice(None),) * array.ndim, array)] if number == 0 else []
    else:
        own = (s for s in array.addressable_shards if s.replica_id == 0)
        shards = [(s.index, s.data) for s in own]
    for index, part in shards:
        value = part if isinstance(part, np.ndarray) else _core.explicit_value(part)
        value = np.array(value) if copied else np.asarray(value)
        yield index, as_bits(value)


def _layout(array):
    """The shape of a part of an array, which chunks must divide."""
    if isinstance(array, np.ndarray) or array.is_fully_addressable:
        return array.shape
    return array.sharding.shard_shape(array.shape)


def _write(final, manifest, writes, keep, joined, number):
    temporary = os.path.join(os.path.dirname(final), _INCOMPLETE + os.path.basename(final))
    steps = (
        lambda: number == 0 and _begin(temporary),
        lambda: _write_parts(temporary, writes),
        lambda: number == 0 and _finish(temporary, final, manifest, keep),
    )
    for i, step in enumerate(steps):
        if joined is None:
            step()
            continue
        place, failed = f"step {i} of saving {final}", None
        try:
            step()
        except Exception as error:
            place, failed = f"{place}: {error}", error
        try:  # the others learn from the name what went wrong here
            joined.barrier(place, _TIMEOUT, "checkpoints")
        except AssertionError as error:
            if failed is None:
                raise RuntimeError(f"checkpoints.save failed in another process: {error}") from None
        if failed is not None:
            raise failed


def _begin(temporary):
    parent = os.path.dirname(temporary)
    os.makedirs(parent, exist_ok=True)
    for left in os.listdir(parent):  # by processes that were killed
        if left.startswith(_INCOMPLETE):
            shutil.rmtree(os.path.join(parent, left))
    os.mkdir(temporary)


def _write_parts(temporary, writes):
    pending = []
    for place, shape, dtype, layout, parts in writes:
        if parts:
            store = _opened(os.path.join(temporary, place), shape, dtype, layout)
            pending += [store[_explicit(index, shape)].write(part) for index, part in parts]
    for write in pending:
        write.result()


def _finish(temporary, final, manifest, keep):
    text = json.dumps(manifest, indent=1)
    sealed = json.dumps({"crc32": zlib.crc32(text.encode()), "manifest": text})
    with open(os.path.join(temporary, _MANIFEST), "w") as file:
        file.write(sealed)
        file.flush()
        os.fsync(file.fileno())
    for place, _, _ in os.walk(temporary, topdown=False):
        _sync_directory(place)
    os.rename(temporary, final)
    directory = os.path.dirname(final)
    _sync_directory(directory)
    if keep is not None:
        for old in all_steps(directory)[:-keep]:
            _delete(directory, old)


def _sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _delete(directory, step):
    """Deletes a checkpoint, which is incomplete as soon as that begins."""
    leaving = os.path.join(directory, f"{_INCOMPLETE}deleted-{step}")
    os.rename(os.path.join(directory, str(step)), leaving)
    shutil.rmtree(leaving)


def _opened(path, shape, dtype, layout=None):
    """The Zarr array at a path; made if `layout` is given, the shape of the parts that it has."""
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": path + os.sep},
        # Chunks of zeros are files like others, and a file that is missing is an error.
        "store_data_equal_to_fill_value": True,
        "fill_missing_data_reads": False,
    }
    if layout is not None:
        chunks = chunk_shape(layout, dtype.itemsize)
        spec["metadata"] = {
            "shape": list(shape),
            "data_type": storage_dtype(dtype).name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
        }
    return _tensorstore().open(spec, open=True, create=layout is not None).result()


def _explicit(index, shape):
    """An index of slices with their ends as numbers."""
    return tuple(slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True))


def _read_manifest(path):
    with open(os.path.join(path, _MANIFEST)) as file:
        try:
            sealed = json.load(file)
            text = sealed["manifest"]
            whole = zlib.crc32(text.encode()) == sealed["crc32"]
            manifest = json.loads(text) if whole else None
        except (ValueError, KeyError, TypeError):
            manifest = None
    if manifest is None:
        raise ValueError(f"checkpoints.restore: the manifest of {path} is damaged")
    if manifest["format"] != _FORMAT:
        raise ValueError(
            f"checkpoints.restore expected format {_FORMAT}; {path} is of {manifest['format']}, "
            "which another version of weft wrote"
        )
    return manifest


def restore(
    directory: str | os.PathLike[str],
    target: Any = None,
    step: int | None = None,
    *,
    shardings: Any = None,
) -> Any:
    """Reads the tree of a checkpoint.

    It may be restored by another number of processes than saved it, and with other shardings.

    Args:
      directory: what `save` was given.
      target: a tree of the same structure, whose arrays or ShapeDtypeStructs have the shapes and
        dtypes that are expected; None takes the tree as it was saved, if that is made of dicts,
        lists and tuples. Arrays are placed as those of `target` are; where it has NumPy arrays,
        NumPy arrays are returned.
      step: which checkpoint; None is the last one.
      shardings: a sharding or device for all arrays, or a tree of such of the structure of the
        result; None leaves it to `target`, else arrays go to the default device.

    Raises FileNotFoundError if there is no such checkpoint, TreeStructureError if `target` has
    other leaves, ValueError for other shapes or dtypes and for damaged files.

    Examples:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> saving = weft.checkpoints.save(folder, (wnp.arange(3), 0.5), step=1)
      >>> weft.checkpoints.restore(folder, (wnp.zeros(3, "int32"), 0.0))
      (Array([0, 1, 2], dtype=int32), 0.5)
    """
    directory = os.path.abspath(directory)
    if _last is not None and _last.directory == directory and not _last._seen:
        _last.wait()
    wanted = latest_step(directory) if step is None else step
    path = os.path.join(directory, str(wanted))
    if wanted is None or not os.path.exists(os.path.join(path, _MANIFEST)):
        steps = all_steps(directory)
        raise FileNotFoundError(
            f"checkpoints.restore expected a checkpoint{'' if step is None else f' of step {step}'}"
            f" in {directory}; it has {f'steps {steps}' if steps else 'none'}"
        )
    manifest = _read_manifest(path)
    records = manifest["leaves"]
    if target is None:
        tree = tree_of(manifest["tree"])
        wishes = [None] * len(records)
    else:
        named, _ = tree_flatten_with_path(target)
        _check_paths([keystr(p) for p, _ in named], [r["path"] for r in records], path)
        tree, wishes = target, [leaf for _, leaf in named]
    _, treedef = tree_flatten(tree)
    places = _places(shardings, treedef)
    leaves = [
        _restored(os.path.join(path, "arrays", str(i)), record, wish, place)
        for i, (record, wish, place) in enumerate(zip(records, wishes, places, strict=True))
    ]
    return tree_unflatten(treedef, leaves)


def _places(shardings, treedef):
    if shardings is None or hasattr(shardings, "device_set") or hasattr(shardings, "process_index"):
        return [shardings] * treedef.num_leaves
    return treedef.flatten_up_to(shardings)


def _check_paths(target, saved, path):
    if target == saved:
        return
    missing = [p for p in target if p not in set(saved)]
    extra = [p for p in saved if p not in set(target)]
    said = []
    if missing:
        said.append(f"target{missing[0]} is not in the checkpoint")
    if extra:
        said.append(f"the checkpoint has tree{extra[0]}, target has not")
    if not said:
        said.append("the leaves are in another order")
    raise TreeStructureError(
        f"checkpoints.restore expected a target of the structure that {path} has: "
        f"{'; '.join(said)} ({len(target)} and {len(saved)} leaves)"
    )


def _restored(path, record, wish, place):
    from weft._assembly import make_array_from_callback
    from weft.sharding import SingleDeviceSharding

    kind = record["kind"]
    where = f"checkpoints.restore: tree{record['path']}"
    if kind == "python":
        return python_value(record)
    dtype, shape = from_bits(record), tuple(record["shape"])
    if wish is not None:
        _check_like(where, record, wish)
    if kind == "float0":
        return np.zeros(shape, dtype)
    as_numpy = kind == "numpy" if wish is None else isinstance(wish, (np.ndarray, np.generic))
    if place is None:
        place = getattr(wish, "sharding", None)
    if as_numpy and place is None:
        return _read(path, record, dtype, shape, ())
    if _core.canonical_dtype(dtype) != dtype:
        raise ValueError(
            f"{where} is {dtype.name}, which arrays are not while weft_enable_x64 is off; enable "
            "it, or give a target with a NumPy array there"
        )
    if place is None or hasattr(place, "process_index"):
        place = SingleDeviceSharding(place or _default_device())
    array = make_array_from_callback(
        shape, place, lambda index: _read(path, record, dtype, shape, index), dtype
    )
    return wrap_key_data(array, impl=record["impl"]) if kind == "key" else array


def _default_device():
    from weft.runtime import devices

    return devices.device_at(_core.current_device())


def _read(path, record, dtype, shape, index):
    if not has_elements(record):
        return np.empty(shape, dtype)
    index = index or (slice(None),) * len(shape)
    try:
        part = _opened(path, shape, dtype)[_explicit(index, shape)].read().result()
    except ValueError as error:
        raise ValueError(f"checkpoints.restore: {path} is damaged: {error}") from None
    return np.ascontiguousarray(part).reshape(part.shape).view(dtype)


def _check_like(where, record, wish):
    name, shape = record.get("key", record["dtype"]), tuple(record["shape"])
    if record["kind"] == "key":
        shape = shape[:-1]
    if not hasattr(wish, "shape") or not hasattr(wish, "dtype"):
        raise ValueError(f"{where} is an array {name}{list(shape)}; target has {wish!r}")
    dtype = wish.dtype
    wanted = str(dtype) if is_key(dtype) else "float0" if dtype.names else dtype.name
    if (wanted, tuple(wish.shape)) != (name, shape):
        raise ValueError(
            f"{where} expected {wanted}{list(wish.shape)}, as target has; the checkpoint has "
            f"{name}{list(shape)}"
        )


def _report_at_exit():
    """What went wrong with the last checkpoint, if nobody has asked."""
    if _last is not None and not _last._seen:
        try:
            _last.wait()
        except Exception:
            sys.stderr.write(f"weft: checkpoint {_last.step} of {_last.directory} failed\n")
            traceback.print_exc()


atexit.register(_report_at_exit)
