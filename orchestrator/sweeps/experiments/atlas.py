"""The atlas: every model on every kind of state, under one protocol, with three seeds; the same at every scale.

Models have one layer (the transformer two) and a width of 64. They read 20 inputs, have a label at each of them, and
are tested on up to 100. A model has learned a task if it is right at the last of 100 inputs as often as `LEARNED` says.
Tasks stand for the classes that algebra distinguishes: star-free monoids, commutative groups, groups that are solvable,
monoids with such groups in them, and groups that are not solvable. There is one learning rate per model, with which it
learns a task that theory says it can track; a model's `own_learning_rates` name those that differ from the rest. Delta
models have no convolution, so that a token is one transition, and four heads: with one, a pair of reflections was still
learning S3 after 1,500 steps, and with four it had learned it after 1,150.
"""

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.scales import PAPER, Scale
from orch.sweeps.selection import Results
from orch.tasks import Task
from orch.tasks.automaton import Automaton
from orch.tasks.bracketed_arithmetic import BracketedArithmetic
from orch.tasks.cycle_navigation import CycleNavigation
from orch.tasks.dihedral import Dihedral
from orch.tasks.even_pairs import EvenPairs
from orch.tasks.flip_flop import FlipFlop
from orch.tasks.group import WordProblem
from orch.tasks.modular_addition import ModularAddition
from orch.tasks.modular_arithmetic import ModularArithmetic
from orch.tasks.parity_check import ParityCheck
from orch.tasks.state_machine import StateMachine

TITLE = "Atlas: which model can track which state"
REPRODUCES = "nothing: it asks theory's question of every model and task"
IN_ALL = False

SMALL = Scale(
    name="atlas",
    about="every model on every kind of state",
    width=64,
    steps=1500,
    eval_every=50,
    learning_rates=(3e-3,),
    seeds=(0, 1, 2),
    moduli=PAPER.moduli,
    samples=512,
)
PROTOCOL: dict[str, Any] = {
    "supervision": "every",
    "min_inputs": 20,
    "max_inputs": 20,
    "stop_loss": 1e-4,
    "test_length": 100,
    "curve_lengths": (20, 40, 60, 80, 100),
}

WALK = '{"next":[[0,1],[0,2],[1,3],[2,3]]}'
"""A walk between two walls: four places, and steps to the left and to the right, of which a wall stops some."""
NO_CONVOLUTION = {"kernel_size": 0}
NEGATIVE = {"negative_eigenvalues": True}


def tasks() -> list[Task]:
    """Return one task of each kind, and at least one of each name."""
    return [
        FlipFlop(modulus=2),
        EvenPairs(),
        Automaton(table=WALK, called="Walk"),
        ParityCheck(),
        ModularAddition(modulus=5),
        CycleNavigation(modulus=5),
        WordProblem(group="S3"),
        Dihedral(modulus=4),
        WordProblem(group="Q8"),
        WordProblem(group="A4"),
        WordProblem(group="S4:generators"),
        ModularArithmetic(modulus=3),
        BracketedArithmetic(modulus=3, nesting=1),
        StateMachine(modulus=5),
        WordProblem(group="A5:generators"),
        WordProblem(group="S5:generators"),
    ]


def short_title(task: Task) -> str:
    """Return the name of a task on an axis: that of its group or automaton, or its title and modulus."""
    if task.has_modulus:
        return f"{task.title_of()} {task.modulus}"
    return task.summary.partition(" #")[0] or task.title_of()


def models(scale: Scale) -> list[tuple[str, ModelConfig]]:
    """Return every model, with the name of its variant, in the order of what theory says they can do."""
    return [
        ("1", scale.model("mamba")),
        ("1", scale.model("rg_lru")),
        ("1", scale.model("mlstm")),
        ("", scale.model("delta_net", **NO_CONVOLUTION)),
        ("", scale.model("gated_delta_net", **NO_CONVOLUTION)),
        ("2", scale.model("delta_product", **NO_CONVOLUTION, householders=2)),
        ("1", scale.model("block_diagonal", block_size=1)),
        ("negative", scale.model("mamba", **NEGATIVE)),
        ("", scale.model("rotation")),
        ("1", scale.model("unitary_diagonal")),
        ("1", scale.model("lru")),
        ("2", scale.model("transformer", layers=2)),
        ("negative", scale.model("delta_net", **NO_CONVOLUTION, **NEGATIVE)),
        ("negative", scale.model("gated_delta_net", **NO_CONVOLUTION, **NEGATIVE)),
        ("2 negative", scale.model("delta_product", **NO_CONVOLUTION, **NEGATIVE, householders=2)),
        ("4 negative", scale.model("delta_product", **NO_CONVOLUTION, **NEGATIVE, householders=4)),
        ("2", scale.model("block_diagonal", block_size=2)),
        ("", scale.model("factored", rank=256)),
        ("", scale.model("bilinear")),
        ("", scale.model("sd_ssm")),
        ("", scale.model("rnn")),
        ("", scale.model("mi_rnn")),
        ("", scale.model("lstm")),
        ("1", scale.model("slstm")),
    ]


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    """Yield the cells task by task: early results then show every model."""
    # A sparse scale only proves that each trial runs, so its few steps and samples replace ours.
    small = dataclasses.replace(scale, name=SMALL.name, moduli=SMALL.moduli) if scale.sparse else SMALL
    chosen = small.under(scale.protocol)
    for task, (variant, model) in product(tasks(), models(chosen)):
        yield chosen.cell(task, model, variant=variant, **PROTOCOL)
