"""The private parts of torch that training uses. If a test fails after an upgrade, torch_compat must change."""

import torch

from orch.training.torch_compat import fused_adam_step

SETTINGS = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}


def test_the_fused_kernel_exists_under_its_private_name():
    assert callable(getattr(torch, "_fused_adam_", None)), "StackedAdam.update cannot train without torch._fused_adam_"


def test_the_fused_kernel_updates_like_the_public_optimiser():
    """Otherwise trained numbers change: StackedAdam would no longer be Adam."""
    generator = torch.Generator().manual_seed(0)
    parameter = torch.randn(7, 3, generator=generator)
    public = parameter.clone().requires_grad_()
    optimiser = torch.optim.Adam([public], lr=0.01, betas=(0.9, 0.999), eps=1e-8, fused=True)
    first, second, step = torch.zeros_like(parameter), torch.zeros_like(parameter), torch.zeros(())
    for _ in range(3):
        gradient = torch.randn(7, 3, generator=generator)
        public.grad = gradient.clone()
        optimiser.step()
        step += 1
        fused_adam_step([parameter], [gradient], [first], [second], [step], learning_rate=0.01, **SETTINGS)
    assert torch.equal(parameter, public.detach())
