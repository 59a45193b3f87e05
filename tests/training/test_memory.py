"""The memory that training a full bilinear model of width 256 takes."""

import subprocess
import sys

import pytest

PEAK = """
import resource, torch
from orch.sweeps.trial import make_trial
from orch.training.train import Training

def resident_peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

torch.set_num_threads(1)
warm = Training([make_trial("modular_addition", "bilinear", width=8, steps=2, eval_every=1, test_length=10,
                            curve_lengths=(10,))])
while not warm.finished:
    warm.advance()
trial = make_trial("modular_addition", "bilinear", modulus=5, steps=6, eval_every=3, curve_lengths=(10,))
before = resident_peak()
training = Training([trial])
while not training.finished:
    training.advance()
print(resident_peak() - before)
"""


@pytest.mark.thorough
def test_training_a_full_bilinear_model_stays_within_one_and_a_half_times_what_it_must_hold():
    found = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    parameters = 256**3 + 2 * 7 * 256 + 256 + 7
    parameters_gradients_and_moments = 4 * 4 * parameters
    token_table = 4 * 7 * 256 * 256
    assert int(found.stdout) < 1.5 * (parameters_gradients_and_moments + token_table)
