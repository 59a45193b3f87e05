"""Protocols: named ways to ask whether a model tracks a state. No torch.

A protocol decides the settings in `DECIDED` and nothing else: lengths to train and to test on, which positions have a
label, and the accuracy at which training stops. The scale decides sizes, steps, seeds and learning rates; the sweep
decides models, tasks and all other settings. Without a protocol, a sweep's own settings count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from orch.core.errors import InvalidSettings, look_up_name
from orch.sweeps.supervision import EVERY, FINAL
from orch.sweeps.trial import Trial

DECIDED = ("min_inputs", "max_inputs", "test_length", "curve_lengths", "supervision", "stop_accuracy")
"""The settings of a trial that every protocol decides."""
SEPARATOR = ":"
"""Stands between a scale and a protocol in the name of a scale under a protocol, such as laptop:chomsky."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol and the paper that it is after."""

    name: str
    about: str
    source: str
    settings: Mapping[str, Any]
    """The value of every setting in `DECIDED`."""

    def problems(self, sweep: str, trials: Iterable[Trial]) -> list[str]:
        """Return why a sweep cannot run under it, given a trial of each cell as the sweep itself asks for them."""
        asked = list(trials)
        found = []
        if self.settings["min_inputs"] != self.settings["max_inputs"] and any(trial.balanced for trial in asked):
            found.append(
                f"{sweep} trains on balanced sets of one length, but protocol {self.name} trains on"
                f" {self.settings['min_inputs']} to {self.settings['max_inputs']} inputs: run it without --protocol"
            )
        varied = [name for name in self.settings if len({getattr(trial, name) for trial in asked}) > 1]
        if varied and not found:
            found.append(
                f"{sweep} varies {', '.join(varied)}, which protocol {self.name} decides: run it without --protocol"
            )
        return found

    def merged(self, given: Mapping[str, Any], what: str = "") -> dict[str, Any]:
        """Return these settings with those that it decides, or raise an error if they overlap.

        `what` stands before the names of settings in the error, such as "--".
        """
        twice = [name for name in self.settings if name in given]
        if twice:
            names = ", ".join(f"{what}{name.replace('_', '-') if what else name}" for name in twice)
            raise InvalidSettings([f"protocol {self.name} decides {names}: leave out either"])
        return {**given, **self.settings}


def _protocol(name: str, about: str, source: str, **settings: Any) -> Protocol:
    assert set(settings) == set(DECIDED), f"protocol {name} must decide exactly {DECIDED}"
    return Protocol(name, about, source, MappingProxyType(settings))


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        protocol.name: protocol
        for protocol in (
            _protocol(
                "paper",
                "2 to 10 inputs, tested on 500, with a label at the end",
                "the paper that orch reproduces",
                min_inputs=2,
                max_inputs=10,
                test_length=500,
                curve_lengths=(10, 20, 50, 100, 200, 500),
                supervision=FINAL,
                stop_accuracy=0.0,
            ),
            _protocol(
                "chomsky",
                "3 to 40 inputs, tested on 40 to 256, with a label at the end",
                "Delétang et al. 2023, with the lengths of Beck et al. 2024 (xLSTM) and Grazzi et al. 2025",
                min_inputs=3,
                max_inputs=40,
                test_length=256,
                curve_lengths=(40, 64, 96, 128, 160, 192, 224, 256),
                supervision=FINAL,
                stop_accuracy=0.0,
            ),
            _protocol(
                "word-problem",
                "up to 20 inputs, also in tests, with a label at every input, until accuracy 0.99",
                "Merrill, Petty and Sabharwal 2024 (The Illusion of State in State-Space Models)",
                min_inputs=2,
                max_inputs=20,
                test_length=20,
                curve_lengths=(5, 10, 15, 20),
                supervision=EVERY,
                stop_accuracy=0.99,
            ),
            _protocol(
                "deltaproduct",
                "128 inputs, tested on up to 512, with a label at every input",
                "Siems et al. 2025 (DeltaProduct)",
                min_inputs=128,
                max_inputs=128,
                test_length=512,
                curve_lengths=(128, 256, 384, 512),
                supervision=EVERY,
                stop_accuracy=0.0,
            ),
        )
    }
)


def find_protocol(name: str) -> Protocol:
    """Return the protocol of this name, or raise an error that suggests the nearest."""
    return look_up_name("protocol", name, PROTOCOLS)


def scale_under(scale: str, protocol: str | None) -> str:
    """Return the name of a scale under a protocol.

    >>> scale_under("laptop", "chomsky"), scale_under("laptop", None)
    ('laptop:chomsky', 'laptop')
    """
    return f"{scale}{SEPARATOR}{protocol}" if protocol else scale


def options_of(scale: str) -> Sequence[str]:
    """Return the options of a command line that stand for the name of a scale.

    >>> options_of("laptop:chomsky")
    ['--scale', 'laptop', '--protocol', 'chomsky']
    """
    size, _, protocol = scale.partition(SEPARATOR)
    return ["--scale", size, *(["--protocol", protocol] if protocol else [])]
