"""Damaged files are named in a warning and set aside, so that work goes on with what is good."""

from orch.store.files import Files

FOLDER = "damaged"
"""Folder of a store with the files that were set aside."""


class StoreWarning(UserWarning):
    """A warning about damage to a store that does not prevent further work."""


def set_aside(files: Files, path: str, aside: str, damage: Exception) -> tuple[str, bool] | None:
    """Move a damaged file to `aside`. Return the sentence to warn with, and whether it was moved; None if it is gone.

    In a store that cannot be changed, the file stays where it is.
    """
    try:
        files.move(path, f"{FOLDER}/{aside}")
        where, moved = f"moved to {FOLDER}/{aside}", True
    except FileNotFoundError:
        return None
    except Exception:
        where, moved = "left where it is", False
    return f"{path} of the store at {files.location} is damaged and was {where} ({damage})", moved
