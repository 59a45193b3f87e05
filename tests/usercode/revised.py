"""Revisions of classes in sweep files, and whether an edit changes them."""

from orch.usercode import UserCode
from orch.usercode.revision import revision


def code(text, **others):
    return UserCode((("sweep.py", text), *((f"{name}.py", other) for name, other in others.items())))


def changed(before, after, name="Model"):
    """Return whether an edit changes the revision of a name of the sweep file."""
    before, after = (each if isinstance(each, UserCode) else code(each) for each in (before, after))
    return revision(before, [("sweep.py", name)]) != revision(after, [("sweep.py", name)])
