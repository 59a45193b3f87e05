"""The key pair that opens a cluster's machines: the private key stays in ~/.ssh, AWS gets the public one."""

import os
import shutil
import subprocess
from pathlib import Path

from orch.cluster.amazon.account import TAG, Account, Verb, absent
from orch.core.errors import OrchError


def private_key(account: Account) -> str:
    """Return the path of the private key, with ~ for the home."""
    return f"~/.ssh/{account.names.key_pair}.pem"


def ensure_key_pair(account: Account) -> None:
    """Make the key here and tell AWS its public half, or find both."""
    ec2, name, names = account.client("ec2"), account.names.key_pair, account.names
    shown = private_key(account)
    path = Path(shown).expanduser()
    found = absent(lambda: ec2.describe_key_pairs(KeyNames=[name], IncludePublicKey=True))
    pair = found["KeyPairs"][0] if found else None
    if pair is not None:
        account.check_ours(f"key pair {name}", pair.get("Tags"))
        if not path.exists():
            raise OrchError(
                f"the key pair {name} exists, and its private key is not here: copy {shown} from the machine where"
                " orch cluster init ran first, or choose another --name"
            )
        account.found(f"key pair {name}, private key {shown}")
        return
    if not path.exists():
        account.change(Verb.MAKE, f"private key {shown}", lambda: _generate(path, _comment(account)))
    tagged = [{"ResourceType": "key-pair", "Tags": names.tags}]
    account.change(
        Verb.MAKE,
        f"key pair {name}",
        lambda: ec2.import_key_pair(KeyName=name, PublicKeyMaterial=_public(path), TagSpecifications=tagged),
    )


def remove_key_pair(account: Account) -> None:
    """Remove the key pair, and the private key here, if they were made for this cluster."""
    ec2, name = account.client("ec2"), account.names.key_pair
    found = absent(lambda: ec2.describe_key_pairs(KeyNames=[name]))
    if found is None or not account.may_remove(f"key pair {name}", found["KeyPairs"][0].get("Tags")):
        return
    shown = private_key(account)
    path = Path(shown).expanduser()
    if path.exists() and _public(path).strip().endswith(_comment(account)):
        account.change(Verb.REMOVE, f"private key {shown}", path.unlink)
    account.change(Verb.REMOVE, f"key pair {name}", lambda: ec2.delete_key_pair(KeyName=name))


def _comment(account: Account) -> str:
    """Return the comment in a key that was made here. A user's own key of the same name has another."""
    return f"{TAG}:{account.names.key_pair}"


def _generate(path: Path, comment: str) -> None:
    """Generate a private key that only its owner can read. It appears under its name only once it is complete."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    _keygen("-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(aside))
    aside.with_name(f"{aside.name}.pub").unlink()
    aside.rename(path)


def _public(path: Path) -> str:
    return _keygen("-y", "-P", "", "-f", str(path))


def _keygen(*words: str) -> str:
    if shutil.which("ssh-keygen") is None:
        raise OrchError("ssh-keygen is not installed, and machines are reached by ssh: install OpenSSH's client")
    done = subprocess.run(["ssh-keygen", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        told = " ".join(done.stderr.split())
        raise OrchError(f"ssh-keygen cannot use {words[-1]} ({told}): move that file away")
    return done.stdout
