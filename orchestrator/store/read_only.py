"""The files of a store that must not be changed, such as someone else's."""

from collections.abc import Mapping
from typing import NoReturn

from orch.core.errors import StoreUnreachable
from orch.store.files import Data, Files


class ReadOnlyFiles:
    """Files that can be read like those that they wrap; every method that would write raises an error."""

    def __init__(self, files: Files):
        self._files = files
        self.location = files.location

    @property
    def listed(self) -> Mapping[str, str]:
        return self._files.listed

    def get(self, path: str, most: int | None = None) -> bytes:
        return self._files.get(path, most)

    def sizes(self, folder: str) -> dict[str, int]:
        return self._files.sizes(folder)

    def exists(self) -> bool:
        return self._files.exists()

    def local_path(self, path: str) -> str | None:
        return self._files.local_path(path)

    def put(self, path: str, data: Data) -> None:
        self._refuse()

    def delete(self, path: str) -> None:
        self._refuse()

    def move(self, path: str, target: str) -> None:
        self._refuse()

    def sweep(self) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreUnreachable(f"the store at {self.location} was opened for reading only: open it for writing")
