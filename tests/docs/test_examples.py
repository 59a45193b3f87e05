"""Commands and code in the README and the documentation: all are well formed, and those that only read are run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from orch.cli import main
from tests.command_line import orch

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
READS_ONLY = {"claims", "models", "plan", "query", "reproduction", "results", "sweeps", "tasks"}
PLACEHOLDER = re.compile(r"…|⇥|\b[A-Z]{3,}\b|<|\{|^orch \w+$")
"""What stands for something that the reader fills in, and a command that a sentence only mentions."""


def commands_of(page):
    """Return the commands that a page shows in blocks and within sentences, without their comments."""
    text = page.read_text()
    blocks = "\n".join(body for language, body in BLOCK.findall(text) if language in ("", "bash", "text"))
    blocks = re.sub(r"\\\n\s*", " ", blocks)
    in_blocks = re.findall(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(orch [a-z].*?)(?:\s{2,}#.*|\s+# .*)?$", blocks, re.MULTILINE)
    in_sentences = re.findall(r"`(?:[A-Z_]+=\S+ )*(orch [a-z][^`]*)`", BLOCK.sub("", text))
    return list(dict.fromkeys(" ".join(each.split()) for each in [*in_blocks, *in_sentences]))


SHOWN = [(page, command) for page in PAGES for command in commands_of(page)]
COMPLETE = [(page, command) for page, command in SHOWN if not PLACEHOLDER.search(re.sub(r'"[^"]*"', "", command))]


def words_of(command):
    """Return the words of a command up to where a shell would pass its output on."""
    words = shlex.split(command)
    end = next(
        (place for place, word in enumerate(words) if word in ("|", ">", "&&") or word.endswith(";")), len(words)
    )
    return words[:end]


def named(pairs):
    return [pytest.param(page, command, id=f"{page.stem}: {command[:80]}") for page, command in pairs]


@pytest.mark.parametrize(("page", "command"), named(SHOWN))
def test_a_command_that_is_shown_exists_with_all_its_options(page, command):
    names = words_of(command)[1:]
    found: click.Command = main
    context = click.Context(main, info_name="orch")
    while isinstance(found, click.Group) and names and not names[0].startswith("-"):
        found, name = found.get_command(context, names[0]), names.pop(0)
        assert found is not None, f"there is no command {name}"
        context = click.Context(found, parent=context, info_name=name)
    known = {flag for parameter in found.get_params(context) for flag in (*parameter.opts, *parameter.secondary_opts)}
    own_settings = any(
        name.endswith(".py") for name in names
    )  # options of a user's models are known to their file only
    used = {name.partition("=")[0] for name in names if name.startswith("--")}
    assert own_settings or used <= known, used - known


def quick(command):
    """Return whether a command only reads what ships with the project."""
    words = words_of(command)
    return (
        words[1] in READS_ONLY
        and not {"--output", "--on"} & set(words)
        and not any(word.endswith((".py", ".yaml")) or word.startswith("s3://") for word in words)
        and ("bundled" in words or words[1] in ("models", "plan", "sweeps", "tasks"))
    )


RUN = list({command: (page, command) for page, command in COMPLETE if quick(command)}.values())


def test_many_commands_are_run():
    assert len(RUN) > 15


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "command"), named(RUN))
def test_a_command_that_only_reads_runs_as_shown(page, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    os.symlink(ROOT / "examples", tmp_path / "examples")
    orch(*words_of(command)[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_that_is_shown_compiles(page):
    for language, body in BLOCK.findall(page.read_text()):
        if language == "python":
            compile(body.replace("…", "..."), page.name, "exec")


@pytest.mark.slow
@pytest.mark.ray
def test_the_tutorial_works_as_a_reader_would_type_it(tmp_path):
    page = ROOT / "docs" / "tutorial.md"
    study, change = [body for language, body in BLOCK.findall(page.read_text()) if language == "python"]
    path = tmp_path / "my_study.py"
    path.write_text(study)
    shown = [words_of(command) for command in commands_of(page)]
    *first, query = [*dict.fromkeys(map(tuple, shown))]
    assert [words[1] for words in first] == ["train", "plan", "sweep", "results", "results", "report", "query"]
    outputs = {}

    def run(words):
        command = [sys.executable, "-m", "orch", *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        outputs[words[1]] = done.stdout

    for words in first:
        run(words)
    assert "12 trials finished" in outputs["sweep"]
    path.write_text(re.sub(r"models=\[.*?\]", change.strip().replace("models = ", "models="), study, count=1))
    run(first[2])
    run(query)
    assert "6 trials finished" in outputs["sweep"]
    assert "gates (signed no)" in outputs["sweep"]
    assert "false,6," in outputs["query"]
    assert (tmp_path / "table.tex").exists()
    assert (tmp_path / "report.html").exists()
