"""`orch checklist`: answers for the checklist of a paper."""

from pathlib import Path

import click

from orch.cli._options import WRITTEN, OutputPath, store_option, sweep_scale_options, where_option
from orch.cli._output import echo_data
from orch.cli._sweeps import say_note, sweeps_argument
from orch.core.errors import OrchError
from orch.sweeps.scales import LAPTOP


@click.command()
@sweeps_argument()
@sweep_scale_options
@where_option
@click.option("--format", type=click.Choice(["markdown", "latex"]), default="markdown", show_default=True)
@click.option(
    "--output",
    type=OutputPath(path_type=Path, dir_okay=False, endings=WRITTEN),
    help="File to write.  [default: print it]",
)
@store_option
def checklist(
    sweeps: tuple[str, ...],
    scale: str | None,
    where: tuple[str, ...],
    format: str,
    output: Path | None,
    store: str,
) -> None:
    """Answer the questions of the NeurIPS checklist from a store.

    The answers are from what the store has recorded of its finished trials, or of those of the named sweeps: runs,
    ranges of settings, selection, seeds and intervals, hardware, hours, versions and commits. Read them before you
    submit them: only you know what else was done.

    \b
    Example: orch checklist main --scale laptop --store bundled --format latex --output checklist.tex
    """
    from orch.analysis.checklist import as_latex, as_markdown
    from orch.analysis.checklist import checklist as answer
    from orch.analysis.report.write import write_text
    from orch.analysis.selected_trials import selected_trials
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import name_sweeps

    named = name_sweeps(sweeps, Store.open(store), scale)
    say_note(named)
    study = Study(store, named.catalogue)
    trials = selected_trials(study, named.names, named.scale or LAPTOP.name, where)
    if not trials.num_rows:
        raise OrchError(f"no finished trial of {store} was chosen: widen --where, or run orch sweep first")
    answers = answer(study, trials)
    text = as_markdown(answers) if format == "markdown" else as_latex(answers)
    if output is None:
        echo_data(text, nl=False)
    else:
        write_text(output, text)
