"""Ray's own checks of a launcher file: its schema, and what its launcher validates before it starts a machine."""

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from orch.cluster.problem import Problem, error, muted, quoted


def prepare(config: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Fill in Ray's defaults as `ray up` would, and list what Ray rejects."""
    import ray.autoscaler
    from ray.autoscaler._private.util import prepare_config, validate_config

    with muted():
        try:
            prepared = prepare_config(json.loads(json.dumps(config)))
        except Exception as refusal:  # Ray meets a value of a wrong type in its own ways
            return None, [error(f"Ray cannot use the file ({_refusal(refusal)}): compare it with those in cluster/")]
        schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
        problems = list(_violations(prepared, schema))
        if not problems:
            try:
                validate_config(prepared)
            except Exception as refusal:
                problems.append(error(f"Ray refuses the file ({_refusal(refusal)}): compare it with those in cluster/"))
    return prepared, problems


def _violations(config: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Problem]:
    import jsonschema

    for violation in jsonschema.Draft7Validator(schema).iter_errors(config):
        place = ".".join(str(part) for part in violation.absolute_path)
        if violation.validator == "additionalProperties":
            known = violation.schema.get("properties", {})
            for name in sorted(set(violation.instance) - set(known)):
                close = difflib.get_close_matches(name, known, n=1)
                remedy = f"did you mean {close[0]}?" if close else "remove it"
                yield error(f"{place + '.' if place else ''}{name} is not a setting of Ray's launcher: {remedy}")
        elif violation.validator == "required":
            yield error(f"{place or 'the file'} is not complete ({violation.message}): add it")
        else:
            yield error(f"{place} does not fit Ray's launcher ({violation.message}): correct it")


def _refusal(refusal: Exception) -> str:
    return quoted(refusal.format_message() if isinstance(refusal, click.ClickException) else refusal)
