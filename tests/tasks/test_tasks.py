"""The contract of every task: the form of its sequences, and vectorised labels equal to those of the plain fold."""

import dataclasses
import functools
import itertools
import random

import pytest
import torch

from orch.tasks import REGISTRY, Task
from orch.tasks.modular_arithmetic import OPERATORS
from orch.tasks.sampling import Sampler, majority
from orch.tasks.state_machine import StateMachine, draw_table

every_task = pytest.mark.parametrize(
    "task",
    [
        *dict.fromkeys(
            task_type.at_modulus(modulus) for task_type in REGISTRY.values() for modulus in (2, 3, 5, 10, 25, 50)
        ),
        *(REGISTRY["group"](group=name) for name in ("S5", "S5:swaps", "A4xZ5:generators", "H3", "Q8")),
        REGISTRY["automaton"](pattern="(ab)*"),
        REGISTRY["automaton"](table="state,a,b,output\nx,y,x,0\ny,z,x,1\nz,x,z,0"),
        REGISTRY["bracketed_arithmetic"](modulus=3, nesting=4),
    ],
    ids=lambda task: f"{task.name}-{task.modulus}",
)


def draw(task: Task, num_samples: int, shortest: int = 2, longest: int = 10, seed: int = 0):
    sampler = Sampler(task)
    return sampler.draw(sampler.generator("test", seed), num_samples, shortest, longest)


@every_task
def test_vectorised_labels_equal_those_of_the_plain_fold(task):
    batch = draw(task, 3000)
    for tokens, end, target in zip(
        batch.tokens_NT.tolist(), batch.end_N.tolist(), batch.target_N.tolist(), strict=True
    ):
        assert task.fold(tokens[1:end]) == target


@every_task
def test_a_sequence_is_bos_then_inputs_then_eoi_then_padding(task):
    batch = draw(task, 500)
    assert batch.tokens_NT.shape == (500, task.num_tokens(10))
    for tokens, end in zip(batch.tokens_NT.tolist(), batch.end_N.tolist(), strict=True):
        assert tokens[0] == task.bos
        assert tokens[end] == task.eoi
        assert set(tokens[end + 1 :]) <= {task.num_readable}
        for position, symbol in enumerate(tokens[1:end]):
            assert symbol in task.slots[position % len(task.slots)]
    assert batch.target_N.min() >= 0
    assert batch.target_N.max() < task.vocabulary


@every_task
def test_each_sample_draws_its_own_number_of_inputs_uniformly(task):
    batch = draw(task, 9000)
    num_inputs = (batch.end_N - 2) // len(task.slots) + 1
    counts = num_inputs.bincount(minlength=11)
    assert counts[:2].sum() == 0
    assert ((counts[2:] - 1000).abs() < 150).all()


@every_task
def test_the_generator_alone_decides_the_samples(task):
    torch.manual_seed(1)
    first = draw(task, 50, seed=7)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again, other = draw(task, 50, seed=7), draw(task, 50, seed=8)
    assert torch.equal(torch.get_rng_state(), state), "the global generator must not be touched"
    assert torch.equal(first.tokens_NT, again.tokens_NT)
    assert not torch.equal(first.tokens_NT, other.tokens_NT)


@every_task
def test_chance_is_one_over_the_number_of_targets_that_occur(task):
    assert len(set(task.machine().target)) == task.num_classes
    assert task.chance == 1 / task.num_classes
    assert task.normalise(task.chance) == 0
    assert task.normalise(1.0) == 1


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_majority_is_the_share_of_the_commonest_answer(name):
    task = REGISTRY[name].at_modulus(3)
    slots = [task.slots[position % len(task.slots)] for position in range(task.num_symbols_for(4))]
    answers = [task.fold(symbols) for symbols in itertools.product(*slots)]
    commonest = max(answers.count(answer) for answer in set(answers)) / len(answers)
    assert majority(task, 4) == pytest.approx(commonest)


def test_the_commonest_answer_of_modular_arithmetic_beats_chance():
    task = REGISTRY["modular_arithmetic"](modulus=5)
    assert majority(task, 500) > task.chance + 0.05


def test_addition_adds():
    task, rng = REGISTRY["modular_addition"](modulus=7), random.Random(0)
    for _ in range(200):
        inputs = [rng.randrange(7) for _ in range(rng.randint(1, 30))]
        assert task.fold(inputs) == sum(inputs) % 7


def test_arithmetic_applies_operators_from_left_to_right():
    task, rng = REGISTRY["modular_arithmetic"](modulus=7), random.Random(0)
    for _ in range(200):
        words = [str(rng.randrange(7))]
        for _ in range(rng.randint(0, 8)):
            words += [rng.choice(OPERATORS), str(rng.randrange(7))]
        nested = words[0]
        for operator, number in zip(words[1::2], words[2::2], strict=True):
            nested = f"({nested} {operator} {number})"
        assert task.fold(task.parse(" ".join(words))) == eval(nested) % 7


def test_brackets_are_evaluated_as_python_does():
    task, rng = REGISTRY["bracketed_arithmetic"](modulus=7, nesting=3), random.Random(0)
    for _ in range(300):
        words, depth = [str(rng.randrange(7))], 0
        for _ in range(rng.randint(0, 12)):
            operator = rng.choice(["+", "-", *["+(", "-("] * (depth < 3), *[")+", ")-"] * (depth > 0)])
            depth += operator.endswith("(") - operator.startswith(")")
            words += [operator, str(rng.randrange(7))]
        assert task.fold(task.parse(" ".join(words))) == eval("".join(words) + ")" * depth) % 7


def test_a_bracket_beyond_the_nesting_or_without_an_opening_is_void():
    task = REGISTRY["bracketed_arithmetic"](modulus=10, nesting=1)
    assert task.fold(task.parse("9 -( 3 -( 1 - 1")) == (9 - (3 - 1 - 1)) % 10
    assert task.fold(task.parse("9 )- 3 )+ 1")) == 7
    assert task.problems() == []
    assert REGISTRY["bracketed_arithmetic"](nesting=9).problems() == ["nesting 9 is not possible: use 0 to 6"]


def test_even_pairs_counts_neighbours_that_differ():
    task = REGISTRY["even_pairs"]()
    for symbols in itertools.product(range(2), repeat=8):
        assert task.fold(symbols) == sum(a != b for a, b in itertools.pairwise(symbols)) % 2


def test_flip_flop_remembers_the_last_value_that_was_written():
    task = REGISTRY["flip_flop"](modulus=3)
    for symbols in itertools.product(range(4), repeat=5):
        assert task.fold(symbols) == next((each for each in reversed(symbols) if each < 3), 0)


def test_state_machines_follow_their_table():
    task, rng = StateMachine(modulus=6), random.Random(0)
    for _ in range(200):
        symbols = [rng.randrange(6) for _ in range(rng.randint(1, 20))]
        assert task.fold(symbols) == functools.reduce(lambda state, symbol: task.table[state][symbol], symbols)


def test_a_machine_depends_on_its_seed_and_modulus_alone_and_each_state_permutes_the_symbols():
    assert StateMachine(modulus=10).table == StateMachine(modulus=10).table
    assert StateMachine(modulus=10, machine_seed=2).table != StateMachine(modulus=10).table
    assert all(sorted(row) == list(range(10)) for row in StateMachine(modulus=10).table)


def test_no_machine_of_two_states_forgets_its_state():
    tables = {draw_table(2, seed) for seed in range(50)}
    assert tables == {((0, 1), (1, 0)), ((1, 0), (0, 1))}


@pytest.mark.parametrize("modulus", [3, 5, 10, 25, 50])
def test_the_default_machines_do_not_commute_and_merge_some_states(modulus):
    table = StateMachine(modulus=modulus).table
    moves = [[table[state][symbol] for state in range(modulus)] for symbol in range(modulus)]
    assert any(a[b[state]] != b[a[state]] for a in moves for b in moves for state in range(modulus))
    assert any(len(set(move)) < modulus for move in moves)


def test_a_balanced_set_of_two_examples_of_parity_is_one_odd_and_one_even():
    sampler = Sampler(REGISTRY["modular_addition"](modulus=2))
    for seed in range(20):
        batch = sampler.draw_balanced(sampler.generator(seed), 2, 10)
        assert sorted(batch.target_N.tolist()) == [0, 1]
        assert batch.end_N.tolist() == [11, 11]


def test_a_balanced_set_spreads_over_all_targets():
    task = REGISTRY["modular_addition"](modulus=5)
    sampler = Sampler(task)
    counts = sampler.draw_balanced(sampler.generator(0), 13, 10).target_N.bincount(minlength=5)
    assert sorted(counts.tolist()) == [2, 2, 3, 3, 3]


def test_titles_name_the_modulus_where_there_is_one():
    title = {name: task.title_of for name, task in REGISTRY.items()}
    assert (title["modular_addition"](), title["modular_addition"](2)) == ("Modular addition", "Parity")
    assert title["modular_addition"](5) == "Addition modulo 5"
    assert title["state_machine"](3) == "State machine, 3 states"

    class Counting(Task):
        name = "counting_up"

    assert (Counting.title_of(), Counting.title_of(4)) == ("Counting up", "Counting up (m = 4)")


def test_a_task_names_its_settings_by_the_modulus_unless_it_has_words_of_its_own():
    parity, addition = (REGISTRY["modular_addition"](modulus=modulus) for modulus in (2, 3))
    assert (parity.summary, parity.heading, parity.full_title) == ("modulo 2", "Parity", "Parity")
    assert (addition.summary, addition.heading, addition.full_title) == ("modulo 3", "m = 3", "Addition modulo 3")

    class WordProblem(REGISTRY["modular_addition"]):
        name = "word_problem"
        title = "Word problem"

        @property
        def summary(self):
            return f"S{self.modulus}"

    task = WordProblem(modulus=3)
    assert (task.summary, task.heading, task.full_title) == ("S3", "S3", "Word problem (S3)")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_no_two_settings_of_a_task_share_a_label(name):
    usual = REGISTRY[name].at_modulus(3)
    other = {"machine_seed": 7, "nesting": 1, "group": "Z7", "table": '{"next":[[1],[0]]}'}
    identifying = {field.name for field in dataclasses.fields(usual) if field.compare} - {"modulus"}
    assert identifying <= other.keys(), "add another value of the new setting"
    changed = [REGISTRY[name](**{setting: other[setting]}) for setting in identifying]
    assert len({usual.full_summary, *(task.full_summary for task in changed)}) == 1 + len(changed)
