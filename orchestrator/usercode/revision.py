"""The revision of a user's model or task: a hash of its source, so that an edited model never uses its old results."""

import ast
import hashlib

from orch.usercode.code import SUFFIX, UserCode, imports

BITS = 48
"""Length of a revision, which fits the store's columns and is exact as a float, as in JSON, or in pandas with nulls."""
_DESCRIBING = {"TITLE", "REPRODUCES", "cells"}


def revision(code: UserCode, file: str) -> int:
    """Return the revision of the models and tasks that a file defines: a hash of its text and of the files it imports.

    File names do not count, nor do statements that only ask for trials: see `_what_trains`.
    """
    imported = {
        name: {f"{module}{SUFFIX}" for module, _ in imports(ast.parse(text), level=1)} for name, text in code.files
    }
    found: set[str] = set()
    pending = {file}
    while pending:
        name = pending.pop()
        found.add(name)
        pending |= imported[name] - found
    texts = dict(code.files)
    if not any(code.file in names for names in imported.values()):
        texts[code.file] = _what_trains(texts[code.file])
    digests = sorted(hashlib.sha256(texts[name].encode()).hexdigest() for name in found)
    return int(hashlib.sha256("".join(digests).encode()).hexdigest()[: BITS // 4], 16) or 1


def _what_trains(text: str) -> str:
    """Return a sweep file's text without its docstring, `TITLE`, `REPRODUCES` and `cells`.

    No result can depend on these: a sweep that asks for more trials keeps the results it has.
    """
    body = ast.parse(text).body
    asking = [node for position, node in enumerate(body) if _asks(node) or (position == 0 and _is_text(node))]
    others = (each for node in body if node not in asking for each in ast.walk(node))
    if any(isinstance(each, ast.Name) and each.id in _DESCRIBING for each in others):
        return text  # the rest of the file uses them
    lines = text.split("\n")
    ends = [line for node in body for line in {node.lineno, node.end_lineno}]
    for node in reversed(asking):
        if ends.count(node.lineno) == ends.count(node.end_lineno) == 1:  # else it shares a line with another statement
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _asks(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "cells" and not node.decorator_list
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Constant):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id in _DESCRIBING
    return False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
