"""The citation and equation of a model, read from the first lines of its code without running it."""

import ast
import importlib.util
import inspect
from pathlib import Path

from orch.models.config import ModelConfig

PAPER = "Sections are those of Ebrahimi and Memisevic, Revisiting Bi-Linear State Transitions in RNNs (2025)."


def equation_of(config_type: type[ModelConfig]) -> str:
    """Return what `network.py` says of a built-in model: citation and equation; of a user's, the class's docstring."""
    folder = config_type.__module__.rpartition(".")[0]
    if folder.startswith(f"{__package__}."):
        spec = importlib.util.find_spec(f"{folder}.network")
        assert spec is not None
        assert spec.origin is not None, "a model is a folder of config.py and network.py"
        said = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    else:
        written = getattr(config_type, "wrapped", config_type)
        said = inspect.getdoc(written) or ""
        if said.startswith(f"{written.__name__}("):
            return ""  # a signature, which dataclasses write where there is no docstring
    # The legend of names in the code helps only its readers.
    said = said.partition("Shapes beyond the package's")[0].strip()
    return f"{said}\n\n{PAPER}" if "Sec. " in said else said
