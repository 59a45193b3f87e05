"""The loss and the gradients of a stack of trials on a batch, from the kernel that the stack trains with."""

from torch import Tensor

from orch.models.kernel import is_compiled
from orch.models.network import Network
from orch.models.token_table import Gradient
from orch.training.precision import autocast


def loss_and_gradients(
    network: Network, tokens_KBT: Tensor, end_KB: Tensor, target_KB: Tensor
) -> tuple[Tensor, dict[str, Gradient]]:
    """Return the loss of each trial on a batch, and the gradients of the trained parameters by name.

    Where samples have several labels, `end_KB` and `target_KB` are (K, B, P).
    """
    if is_compiled(network.kernel) and target_KB.dim() == 2:
        return network.compiled_gradients(tokens_KBT, target_KB)
    with autocast(network):
        loss_K = network.losses(network(tokens_KBT, end_KB), target_KB).mean(1)
    trained = {name: network[name] for name in network.trained_names}
    return loss_K.detach(), dict(zip(trained, network.gradients(loss_K.sum(), trained), strict=True))
