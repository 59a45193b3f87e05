"""Hooks of the documentation site: the home page from the README, and reference pages from the code itself."""

import functools
import posixpath
import re
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()(?!https?://|#)([^)#\s]+)")
"""The target of a link in Markdown, without its anchor."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that no file below docs/ contains."""
    pages = {
        "index.md": (ROOT / "README.md").read_text(),
        "reference/commands.md": commands(),
        "reference/columns.md": columns(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for path in linked_sources():
        files.append(
            File.generated(config, f"source/{path}.md", content=as_page(path), inclusion=InclusionLevel.NOT_IN_NAV)
        )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead each link to a file of the project to the page that shows this file."""
    here = page.file.src_uri
    folder = posixpath.dirname(origin(here))

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        shown = f"source/{path}.md" if path in linked_sources() else path.removeprefix("docs/")
        return match[1] + posixpath.relpath(shown, posixpath.dirname(here) or ".")

    return LINK.sub(target, markdown)


def origin(page: str) -> str:
    """Return the path of the file that a page shows."""
    if page == "index.md":
        return "README.md"
    return page.removeprefix("source/").removesuffix(".md") if page.startswith("source/") else f"docs/{page}"


@functools.cache
def linked_sources() -> frozenset[str]:
    """Return the paths of files beyond docs/ that pages link to."""
    found = set()
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for _, path in LINK.findall(page.read_text()):
            full = posixpath.normpath(posixpath.join(page.parent.relative_to(ROOT).as_posix(), path))
            if not full.startswith("docs/") and (ROOT / full).is_file():
                found.add(full)
    return frozenset(found)


def as_page(path: str) -> str:
    """Return a file of the project as a page: Markdown as it is, others as code."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    language = {".py": "python", ".ipynb": "json"}.get(Path(path).suffix, "text")
    return f"# {path}\n\n```{language}\n{text}\n```\n"


def commands() -> str:
    """Return the help of every command."""
    from orch.cli import main

    parts = ["# Commands", "", "Generated from `orch COMMAND --help`.", ""]
    for path, command in _all_commands(main, ("orch",)):
        context = click.Context(command, info_name=" ".join(path), max_content_width=100, terminal_width=100)
        parts += [f"## {' '.join(path)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(parts)


def _all_commands(group: click.Group, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += _all_commands(command, (*path, name))
    return found


def columns() -> str:
    """Return every column of every table of a store, with its type and what it says."""
    from orch.store.columns import SCHEMAS

    parts = ["# Columns", "", "Generated from the tables of a store. `orch query --schema` adds the views.", ""]
    for table, schema in SCHEMAS.items():
        parts += [f"## {table}", "", "| column | type | meaning |", "| --- | --- | --- |"]
        for field in schema:
            meaning = (field.metadata or {}).get(b"description", b"").decode().replace("|", "\\|")
            parts.append(f"| `{field.name}` | {str(field.type).replace('|', ' or ')} | {meaning} |")
        parts.append("")
    return "\n".join(parts)
