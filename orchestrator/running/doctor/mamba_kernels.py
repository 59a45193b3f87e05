"""The check of `mamba_ssm` and `causal_conv1d`, whose kernels Mamba uses on a GPU where they are installed."""

from orch.core.errors import BrokenPackage
from orch.models.kernel import PLAIN
from orch.models.mamba.scan import kernel
from orch.running.doctor.examined_trials import published
from orch.running.doctor.finding import Failed, Skipped
from orch.running.doctor.gradients import compare_with_double

LAYERS = 4
"""As many as the deepest published model has."""


def check_mamba_kernels(device: str) -> str:
    """Compare the packages' kernels at the published size with our own scan, in double precision on the CPU."""
    if not device.startswith("cuda"):
        raise Skipped("only a GPU uses mamba_ssm: orch's own scan runs here")
    if kernel(device) == PLAIN:  # a broken package is an error here, also where triton would do without it
        raise Skipped("mamba_ssm and causal_conv1d are not installed: orch's own scan runs here")
    if published("mamba").model.uses_triton(device):
        raise Skipped("orch's own kernels run here: mamba_ssm is used without triton, or with ORCH_KERNEL=plain")
    try:
        return compare_with_double([(published("mamba", layers=LAYERS), (0, 1))], device)
    except Exception as error:
        reason = str(error) if isinstance(error, (Failed, BrokenPackage)) else f"{type(error).__name__}: {error}"
        remedy = "install both for this version of torch (see cluster/setup.sh), or uninstall both"
        raise Failed(f"Mamba's CUDA kernels compute wrongly or not at all ({reason}): {remedy}") from error
