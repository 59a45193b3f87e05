"""Launcher files with values of other types, and files that are none."""

from pathlib import Path

from hypothesis import strategies as st

from tests.hostile.plan import Plan, plan, write
from tests.hostile.values import json_texts

_LAUNCHER = (Path(__file__).parents[2] / "cluster" / "a100.yaml").read_text()
_YAML_VALUES = (
    "2026-01-01", "2026-13-45", "!!binary aGk=", "!!set {a, b}", "!!python/object:os.system x", "&a [*a]", "*nowhere",
    "8.5",
    ".nan", ".inf", "'4'", "[]", "{}", "null", "yes", "- - -", "1:60:60", "0o17", "{1: 2}", "{a: {b: {c: d}}}",
    "[[[[]]]]",
    '"\\e[2J\\e]0;owned\\a"', "9" * 30, "9" * 5000, "-1", "\x1b[8m", "? complex\n: key", "|\n  text", "<<: *a", "''",
)  # fmt: skip


def _laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join([*lines, "setup_commands: *a11"])


def _merging_laughs() -> str:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    return "\n".join([*lines, "provider: *a11"])


_WHOLE_YAML = (
    _laughs(), _merging_laughs(), "", "[]", "x", "null", "a: b: c", "\t", "\x00", "&a\n- *a", "---\na: 1\n---\nb: 2",
    "[" * 5000, "{" * 5000, "a: " + "[" * 300 + "]" * 300, "\x1b[2J: 1", "%YAML 9.9\n---\na: 1", "provider: [aws]",
    "available_node_types: {x: {node_config: {InstanceType: {}}}}", "auth: {ssh_private_key: [1]}",
    "provider: {type: local, head_ip: 5, worker_ips: 7}", "docker: {image: 5}", "max_workers: '4'",
    "available_node_types: {x: {node_config: {NetworkInterfaces: 5}}}", "file_mounts: [a]", "!!float x", "a: !!int x",
)  # fmt: skip


@st.composite
def launchers(draw: st.DrawFn) -> Plan:
    """Draw a launcher file: one that comes with orch with a value replaced, or one that is none."""
    if draw(st.booleans()):
        lines = _LAUNCHER.splitlines()
        places = [number for number, line in enumerate(lines) if ":" in line and not line.lstrip().startswith("#")]
        for _ in range(draw(st.integers(1, 3))):
            place = draw(st.sampled_from(places))
            key = lines[place].partition(":")[0]
            lines[place] = f"{key}: {draw(st.one_of(st.sampled_from(_YAML_VALUES), json_texts))}"
        text = "\n".join(lines)
    else:
        text = draw(st.one_of(st.sampled_from(_WHOLE_YAML), st.text(max_size=60)))
    words = draw(st.sampled_from((("cluster", "check", "l.yaml"), ("watch", "--once", "--price", "l.yaml"))))
    data = text.encode(errors="surrogatepass")
    return plan(
        *words,
        about=f"YAML {text[-200:] if len(text) < 4000 else text[:200]!r}",
        prepare=lambda folder: write(folder / "l.yaml", data),
    )
