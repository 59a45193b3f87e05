"""What models and tasks are called in tables and figures. Names not known here are
shown with spaces for underscores."""

_MODELS = {
    "bilinear": "Bilinear",
    "factored": "Factored",
    "block_diagonal": "Block-diagonal",
    "rotation": "Rotation",
    "lstm": "LSTM",
    "rnn": "RNN",
    "mamba": "Mamba",
    "transformer": "Transformer",
}
_TASKS = {
    "modular_addition": ("Modular addition", "Addition modulo {}"),
    "state_machine": ("State machine", "State machine, {} states"),
    "modular_arithmetic": ("Modular arithmetic", "Arithmetic modulo {}"),
    "dihedral": ("Dihedral group", "Dihedral group of {}"),
}


def model_name(model: str, variant: str = "") -> str:
    """A model with its variant, in the words of the published tables.

    >>> model_name("bilinear"), model_name("block_diagonal", "1"), model_name("mamba", "4")
    ('Bilinear', 'Block 1 (real diagonal)', 'Mamba (4 layers)')
    >>> model_name("factored", "700"), model_name("gated_diagonal", "wide")
    ('Factored (rank 700)', 'Gated diagonal (wide)')
    """
    name = _MODELS.get(model, model.replace("_", " ").capitalize())
    if not variant:
        return name
    if model == "block_diagonal":
        return f"Block {variant}" + (" (real diagonal)" if variant == "1" else "")
    if model == "factored":
        return f"{name} (rank {variant})"
    if model in ("mamba", "transformer"):
        return f"{name} ({variant} layer{'' if variant == '1' else 's'})"
    return f"{name} ({variant})"


def task_name(task: str, modulus: int | None = None) -> str:
    """A task, at one modulus or in general.

    >>> task_name("modular_addition", 2), task_name("modular_addition", 5), task_name("modular_addition")
    ('Parity', 'Addition modulo 5', 'Modular addition')
    """
    if task == "modular_addition" and modulus == 2:
        return "Parity"
    if task in _TASKS:
        general, particular = _TASKS[task]
        return general if modulus is None else particular.format(modulus)
    name = task.replace("_", " ").capitalize()
    return name if modulus is None else f"{name} (m = {modulus})"
