"""Text from a store that would steer a terminal is shown without its control characters."""

from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.core.printable import printable, printable_lines
from orch.store import Store

HOSTILE = "\x1b]0;owned\x07 red\x9b31m \x08\u202etxt"


def test_every_kind_of_control_character_is_replaced():
    assert printable(HOSTILE) == " ]0;owned  red 31m   txt"
    assert printable("accents é, symbols ✓ ± and 漢字 stay") == "accents é, symbols ✓ ± and 漢字 stay"
    assert printable_lines("one\x07\n  two\r\nthree") == ["one ", "  two", "three"]


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "runs")
    texts = dict.fromkeys(("error_type", "error_signature", "error_message", "host"), HOSTILE)
    attempt = {"attempt_id": "a", "trial_id": "0" * 16, "event": "end", "at": datetime.now(UTC), "outcome": "failed"}
    store.write("attempts", [attempt | texts | {"traceback": f"Traceback:\n  {HOSTILE}\n"}])
    return store


@pytest.mark.parametrize(
    "command",
    [
        ["failures"],
        ["query", "SELECT * FROM attempts", "--format", "table"],
        ["query", "SELECT * FROM attempts", "--format", "markdown"],
        ["query", f"SELECT '{HOSTILE}' FROM nowhere"],
    ],
)
def test_no_command_passes_control_characters_on(store, command):
    result = CliRunner().invoke(main, [*command, "--store", store.uri])
    assert "owned" in result.output or result.exit_code
    assert not [character for character in result.output if not character.isprintable() and character != "\n"]
