"""The wheel is complete, starts fast, and works in a folder that has packages with the names of ours."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
WRONG = "raise SystemExit('the wrong package was imported')\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the files that git tracks or would track."""
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
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run([*PIP, *build], check=True)
    (found,) = folder.glob("orch-*.whl")
    return found


def installed(wheel, folder):
    """Install the wheel, and nothing else, into a new environment; return its folders of programs and of packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([*PIP, "--python", python, "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    return folder / "bin", packages


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A fresh environment with the built wheel and click, and nothing else."""
    programs, packages = installed(wheel, tmp_path_factory.mktemp("light") / "venv")
    click = Path(importlib.util.find_spec("click").origin).parent
    shutil.copytree(click, packages / "click")
    return programs


@pytest.fixture(scope="module")
def whole_environment(wheel, tmp_path_factory):
    """A fresh environment with the built wheel, and the dependencies of the environment that runs this test.

    A .pth file appends the other environment's site-packages to the path, behind the wheel's own. Python does not
    read the .pth files of a folder that was added this way, so an editable install of orch over there has no effect.
    """
    programs, packages = installed(wheel, tmp_path_factory.mktemp("whole") / "venv")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture
def crowded(tmp_path):
    """Make a folder of user code with the names of our folders, which fails if any of it is imported."""
    for name in ("models", "analysis", "cluster", "orchestrator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(WRONG)
    (tmp_path / "tasks.py").write_text(WRONG)
    return tmp_path


def run(command, cwd, **environment):
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd)} | environment
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean, check=False)


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
    (packages,) = (environment.parent / "lib").glob("python*/site-packages")
    expected = {
        str(path.relative_to(ROOT / "src"))
        for folder in [ROOT / "src" / "orch", *(ROOT / "src" / "orch").iterdir()]
        for path in (folder.rglob("*") if folder.is_dir() else [folder])
        if path.suffix in (".py", ".j2", ".css", ".js")
    }
    assert len(expected) > 200
    assert {path for path in expected if not (packages / path).exists()} == set()
    assert (packages / "orch" / "py.typed").exists()
    tops = {path.name for path in packages.iterdir()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"orch", "click"}


def test_the_wheel_trains_in_a_folder_that_has_folders_of_the_same_names(whole_environment, crowded):
    found = run([whole_environment / "orch", "models", "--json"], crowded, PYTHONPATH=".")
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
    train = [whole_environment / "orch", "train", "--model", "rnn", "--task", "dihedral", *quick]
    found = run(train, crowded, PYTHONPATH=".")
    assert found.returncode == 0, found.stderr


def test_the_wheel_loads_its_results_in_a_folder_that_has_folders_of_the_same_names(whole_environment, crowded):
    program = "import orch; print(orch.__file__); print(orch.load('bundled').trials.num_rows)"
    found = run([whole_environment / "python", "-c", program], crowded, PYTHONPATH=".")
    assert found.returncode == 0, found.stderr
    place, num_rows = found.stdout.split()
    assert Path(place).is_relative_to(whole_environment.parent)
    assert int(num_rows) > 1000


def test_pip_shows_one_top_level_package(whole_environment):
    shown = subprocess.run(
        [*PIP, "--python", str(whole_environment / "python"), "show", "--files", "orch"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = shown.stdout.partition("Files:\n")[2].split("\n")
    tops = {line.strip().partition("/")[0] for line in files if line.strip().endswith(".py")}
    assert tops == {"orch"}
    assert len(files) > 200


@pytest.mark.ray
def test_the_wheel_sweeps_through_ray_in_a_folder_that_has_folders_of_the_same_names(whole_environment, crowded):
    sweep = ["sweep", "main", "--scale", "smoke", "--where", "task=modular_addition", "--where", "model=rnn"]
    found = run([whole_environment / "orch", *sweep], crowded, PYTHONPATH=".")
    assert found.returncode == 0, found.stderr
    assert "2 trials finished" in found.stdout
    program = "import orch; print(orch.load().trials['model'].to_pylist())"
    found = run([whole_environment / "python", "-c", program], crowded, PYTHONPATH=".")
    assert found.stdout.strip() == "['rnn', 'rnn']", found.stderr
