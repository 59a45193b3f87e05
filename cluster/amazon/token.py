"""Ray's token, which every client and every machine of a cluster must know."""

import os
from pathlib import Path

from orch.cluster.amazon.account import Account, Verb

TOKEN = "~/.ray/auth_token"


def ensure_token(account: Account) -> None:
    """Make the token as `ray get-auth-token --generate` does, readable by its owner only, or find it."""
    path = Path(TOKEN).expanduser()
    if path.exists():
        account.found(f"Ray's token {TOKEN}")
    else:
        account.change(Verb.MAKE, f"Ray's token {TOKEN}", lambda: _write(path))


def _write(path: Path) -> None:
    from ray._private.authentication.authentication_token_generator import generate_new_authentication_token

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(generate_new_authentication_token())
