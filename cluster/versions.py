"""The versions that a cluster's machines will have, parsed from their setup commands."""

import dataclasses
import re

_RAY = re.compile(r"(?<![\w./-])ray(?:\[[\w,\s-]*\])?\s*==\s*([\w.]+)")
_TORCH = re.compile(r"(?<![\w./-])torch\s*==\s*([\w.+]+)")
_PYTHON = re.compile(r"\bpython[\s=]*(3\.\d+)")
_RAY_IMAGE = re.compile(r"rayproject/ray[\w-]*:(\d+\.\d+\.\d+)\.?\w*-py(\d)(\d+)")
_NIGHTLY = re.compile(r"ray-wheels/|\bray-[\w.]*\.dev|rayproject/ray[\w-]*:nightly|\bray\S*==\S*dev")
_WHEEL = re.compile(r"(mamba_ssm|causal_conv1d)-[\w.]+(?:\+|%2B)cu(\d+)torch(\d+\.\d+)cxx11abi\w+-cp(\d)(\d+)-")
_FROM_SOURCE = re.compile(r"(?<![\w./-])(mamba[-_]ssm|causal[-_]conv1d)(?![\w-]*\+)")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A published wheel of a kernel, which works with exactly one version of torch and of Python."""

    package: str
    cuda: str
    torch: str
    python: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Versions:
    """The pinned versions; None where the setup pins none."""

    python: str | None
    ray: str | None
    torch: str | None
    wheels: tuple[Wheel, ...]
    ray_nightly: bool
    kernels_from_source: bool


def find_versions(commands: str, docker_image: str | None) -> Versions:
    """Find the versions that setup commands and a container image pin."""
    image = _RAY_IMAGE.search(docker_image or "")
    python, ray, torch = (pattern.search(commands) for pattern in (_PYTHON, _RAY, _TORCH))
    return Versions(
        python=python[1] if python else f"{image[2]}.{image[3]}" if image else None,
        ray=ray[1] if ray else image[1] if image else None,
        torch=torch[1] if torch else None,
        wheels=tuple(
            Wheel(package=package, cuda=cuda, torch=torch_version, python=f"{major}.{minor}")
            for package, cuda, torch_version, major, minor in _WHEEL.findall(commands)
        ),
        ray_nightly=bool(_NIGHTLY.search(commands) or _NIGHTLY.search(docker_image or "")),
        kernels_from_source=bool(_FROM_SOURCE.search(commands)),
    )
