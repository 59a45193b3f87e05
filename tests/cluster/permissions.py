"""What a policy of AWS allows: its statements, with wildcards and the conditions that our policies use."""

import fnmatch
from collections.abc import Mapping
from typing import Any


def allows(policy: Mapping[str, Any], action: str, resource: str, **context: str) -> bool:
    """Return whether a policy allows an action on a resource. `context` has the condition keys, with __ for : and /."""
    known = {key.replace("__", ":", 1).replace("__", "/").replace("_", "-"): value for key, value in context.items()}
    return any(_fits(statement, action, resource, known) for statement in policy["Statement"])


def _fits(statement: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    assert statement["Effect"] == "Allow"
    conditions = statement.get("Condition", {})
    assert set(conditions) <= {"StringEquals"}
    wanted = conditions.get("StringEquals", {})
    return (
        any(fnmatch.fnmatchcase(action, each) for each in statement["Action"])
        and any(fnmatch.fnmatchcase(resource, each) for each in statement["Resource"])
        and all(context.get(key) == value for key, value in wanted.items())
    )
