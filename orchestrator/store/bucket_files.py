"""The files of a store in an object store, at any URI that `pyarrow.fs` supports."""

import functools
from collections.abc import Mapping
from typing import Any

from orch.core.errors import StoreUnreachable
from orch.core.reading import check_size
from orch.store.crash_points import crash_point, kind_of
from orch.store.credentials import redact
from orch.store.files import Data, reaching

LARGE_BYTES = 5 << 20
"""Files above this size are uploaded in parts. pyarrow sends smaller ones in one request."""


class RemoteFiles:
    """Files below a URI. See `orch.store.files.Files` for what each method promises."""

    def __init__(self, uri: str):
        from pyarrow import fs

        self.location = redact(uri)
        self._uri = uri
        with reaching(self.location, "open"):
            try:
                self._fs, root = fs.FileSystem.from_uri(_in_one_put(uri))
            except ValueError:
                self._fs, root = fs.FileSystem.from_uri(uri)
        self._root = root.strip("/")
        self._has_bucket = False
        self.listed: Mapping[str, str] = {}
        if not self._root:
            raise StoreUnreachable(f"the location {self.location} names no bucket: use one like s3://bucket/folder")

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    @functools.cached_property
    def _fs_for_large_files(self) -> Any:
        """The file system that begins an upload in parts when a file is opened, not when its first part is full.

        If beginning it fails then, closing the file would send what was written so far in the place of the whole.
        """
        from pyarrow import fs

        return fs.FileSystem.from_uri(self._uri)[0]

    def put(self, path: str, data: Data) -> None:
        kind = kind_of(path)
        crash_point(f"{kind}-written")
        pieces = [data] if isinstance(data, bytes) else data
        is_large = sum(memoryview(piece).nbytes for piece in pieces) > LARGE_BYTES
        with reaching(self.location, "write to"):
            try:
                files = self._fs_for_large_files if is_large else self._fs
                with files.open_output_stream(self._full(path)) as stream:
                    crash_point(f"{kind}-created")
                    for piece in pieces:
                        stream.write(piece)
            except FileNotFoundError as error:
                raise OSError(str(error)) from error
        crash_point(f"{kind}-renamed")

    def get(self, path: str, most: int | None = None) -> bytes:
        with reaching(self.location, "read"), self._fs.open_input_stream(self._full(path)) as stream:
            data: bytes = stream.read() if most is None else stream.read(most + 1)
        if most is not None:
            check_size(len(data), most)
        return data

    def delete(self, path: str) -> None:
        with reaching(self.location, "delete from"):
            try:
                self._fs.delete_file(self._full(path))
            except FileNotFoundError:
                return
        crash_point(f"{kind_of(path)}-deleted")

    def move(self, path: str, target: str) -> None:
        with reaching(self.location, "write to"):
            self._fs.move(self._full(path), self._full(target))
        crash_point("damaged-set-aside")

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes. Object stores list by name, which is the order that `Files.sizes` asks for."""
        from pyarrow import fs

        with reaching(self.location, "read"):
            selector = fs.FileSelector(self._full(folder), recursive=True, allow_not_found=True)
            infos = self._fs.get_file_info(selector)
        visible = (info for info in infos if info.is_file and not info.base_name.startswith("."))
        found = {info.path.removeprefix(f"{self._root}/"): info.size for info in visible}
        if not found:
            self._check_bucket()
        return found

    def _check_bucket(self) -> None:
        """Raise an error if the bucket does not exist. It would be listed as empty, and a misspelt name must not be."""
        from pyarrow import fs

        if self._has_bucket:
            return
        with reaching(self.location, "open"):
            bucket = self._fs.get_file_info(self._root.split("/")[0])
        if bucket.type is fs.FileType.NotFound:
            raise StoreUnreachable(f"the store at {self.location} has no bucket: check its name, or create it")
        self._has_bucket = True

    def exists(self) -> bool:
        from pyarrow import fs

        with reaching(self.location, "read"):
            found = bool(self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True)))
        if not found:
            self._check_bucket()
        return found

    def local_path(self, path: str) -> str | None:
        return None

    def sweep(self) -> None:
        """Do nothing: an upload that was cut short never becomes visible."""


def _in_one_put(uri: str) -> str:
    """Return the URI with the option to send a small object in one request, not the three of a multipart upload."""
    if not uri.startswith("s3://") or "allow_delayed_open" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"
