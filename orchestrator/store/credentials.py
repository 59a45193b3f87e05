"""Hiding credentials in texts.

Many people read what is written to a store, and a traceback or a location may contain an access key or a password.
"""

import os
import re
from urllib.parse import parse_qsl, urlsplit

HIDDEN = "***"

_VALUE = r"[\"']?\s*[=:]\s*[\"']?)([^\s\"'&;,)}\]]+)"
_SECRET_NAMES = (
    r"access_?key(?:_?id)?|secret(?:_?access)?_?key|client_?secret|secret|account_?key|api_?key|private_?key"
    r"|(?:auth|access|session|security|api|bearer|refresh|sas|id)_?token|password|passwd|pwd|passphrase|credentials?"
    r"|x-amz-(?:signature|credential|security-token)"
)
_PATTERNS = [
    # user:password@ and token@ of a URI. A password may hold slashes and more, so everything up to the last @ goes.
    (re.compile(r"(\w[\w+.-]*://)(?:[^\s/@:\"']*:[^\s\"']+|[^\s/@:\"']+)@"), rf"\1{HIDDEN}@"),
    (re.compile(rf"(?i)(\b\w*?(?:{_SECRET_NAMES}){_VALUE}"), rf"\1{HIDDEN}"),
    # A bare `token` is a word of this field, so it only counts as a secret among a URI's query parameters.
    (re.compile(r"(?i)([?&](?:\w*token|sig|signature|key)=)[^\s\"'&;,)}\]]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[=:]\s*[\"']?(?:bearer|basic|aws4-hmac-sha256)\s+)\S+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA|AIDA|AROA)[A-Z0-9]{12,}\b"), HIDDEN),
    (re.compile(r"\b(?:hf|ghp|gho|ghs|github_pat|glpat|sk|xox[abp])[_-][A-Za-z0-9_-]{16,}"), HIDDEN),
    # Forty characters of mixed case with digits look like an AWS secret key; a git commit is lower case throughout.
    (
        re.compile(
            r"(?<![\w/+=])(?=[a-z0-9/+=]*[A-Z])(?=[A-Z0-9/+=]*[a-z])(?=[A-Za-z/+=]*[0-9])"
            r"[A-Za-z0-9/+=]{40}(?![\w/+=])"
        ),
        HIDDEN,
    ),
]
_SECRET_VARIABLE = re.compile(r"SECRET|TOKEN|PASSWORD|ACCESS_KEY|API_KEY|CREDENTIAL")
_HARMLESS_PARAMETERS = {"endpoint_override", "scheme", "region"}


def scrub(text: str) -> str:
    """Return `text` with everything hidden that looks like a credential, or is one in this process's environment.

    >>> scrub("cannot open s3://me:hunter2@bucket/runs?secret_key=abc&region=eu-west-1")
    'cannot open s3://***@bucket/runs?secret_key=***&region=eu-west-1'
    >>> scrub("step(state=3, token=5) of 12 tokens: 4")
    'step(state=3, token=5) of 12 tokens: 4'
    """
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET_VARIABLE.search(name.upper()):
            text = text.replace(value, HIDDEN)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact(location: str) -> str:
    """Return a store's location without user, password and parameters, except those known to be harmless.

    >>> redact("s3://key:secret@bucket/runs?session_token=abc&endpoint_override=localhost:9000&scheme=http")
    's3://***@bucket/runs?session_token=***&endpoint_override=localhost:9000&scheme=http'
    >>> redact("runs")
    'runs'
    """
    if "://" not in location:
        return location
    shown, _, query = scrub(location).partition("?")
    if not query:
        return shown
    given = parse_qsl(urlsplit(location).query, keep_blank_values=True)
    parameters = [f"{name}={scrub(value) if name in _HARMLESS_PARAMETERS else HIDDEN}" for name, value in given]
    return f"{shown}?{'&'.join(parameters)}"
