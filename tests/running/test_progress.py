"""The progress of a run, as it is printed."""

from orch.running.display import Display
from orch.running.progress import Progress


def test_control_characters_in_messages_do_not_reach_the_terminal(capsys):
    Display(Progress({}, 0.0)).say("failed: \x1b[31mred\x07")
    assert capsys.readouterr().err == "failed:  [31mred \n"
