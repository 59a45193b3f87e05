"""The wheel: complete, light to start, and at home beside folders of the same names."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment with the built wheel and click, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("orch-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    site_packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
    click = Path(importlib.util.find_spec("click").origin).parent
    shutil.copytree(click, site_packages / "click")
    return folder / "venv" / "bin"


def run(command, cwd, **more):
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean, check=False, **more)


def test_the_wheels_orch_help_works_with_nothing_but_click_installed(environment, tmp_path):
    found = run([environment / "orch", "--help"], tmp_path)
    assert found.returncode == 0, found.stderr
    assert "train" in found.stdout
    for command in ("train", "models", "tasks"):
        found = run([environment / "orch", command, "--help"], tmp_path)
        assert found.returncode == 0, found.stderr


def test_the_wheel_carries_the_published_numbers(environment, tmp_path):
    found = run([environment / "orch", "models", "--matched", "--json"], tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("513207") == 2


def test_every_module_template_and_style_of_the_tree_is_in_the_wheel_below_one_name(environment):
    installed = next((environment.parent / "lib").glob("python*/site-packages"))
    expected = {
        str(path.relative_to(ROOT / "src"))
        for folder in [ROOT / "src" / "orch", *(ROOT / "src" / "orch").iterdir()]
        for path in (folder.rglob("*") if folder.is_dir() else [folder])
        if path.suffix in (".py", ".j2", ".css")
    }
    assert len(expected) > 200
    assert {path for path in expected if not (installed / path).exists()} == set()
    assert (installed / "orch" / "py.typed").exists()
    tops = {path.name for path in installed.iterdir()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"orch", "click"}


def test_orch_works_in_a_folder_that_has_folders_of_the_same_names(tmp_path):
    for name in ("models", "tasks", "analysis", "orchestrator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package was imported')\n")
    orch = Path(sys.executable).parent / "orch"
    found = run([orch, "models", "--json"], tmp_path)
    assert found.returncode == 0, found.stderr
    quick = [
        "--width",
        "8",
        "--steps",
        "2",
        "--eval-every",
        "1",
        "--test-length",
        "10",
        "--curve-lengths",
        "10",
        "--test-samples",
        "8",
        "--json",
    ]
    found = run([orch, "train", "--model", "rnn", "--task", "dihedral", *quick], tmp_path)
    assert found.returncode == 0, found.stderr
