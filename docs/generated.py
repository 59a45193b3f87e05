"""Tables in the documentation that a command prints: `python docs/generated.py` writes them anew.

A page has them between two comments, the first of which names the command:

    <!-- orch reproduction --store bundled --format markdown -->
    …
    <!-- end -->
"""

import re
import shlex
import sys
from pathlib import Path

from click.testing import CliRunner

from orch.cli import main

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
GENERATED = re.compile(r"(?P<begin><!-- (?P<command>orch [^\n]*?) -->\n).*?<!-- end -->", re.DOTALL)


def printed(command: str) -> str:
    """Return what a command prints on standard output."""
    done = CliRunner().invoke(main, shlex.split(command)[1:], catch_exceptions=False)
    if done.exit_code:
        raise SystemExit(f"{command} failed: {done.output}")
    return done.stdout.strip()


def renewed(text: str) -> str:
    """Return a page's text with everything that commands print as they print it now."""
    return GENERATED.sub(lambda found: found["begin"] + printed(found["command"]) + "\n<!-- end -->", text)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text()
        if (new := renewed(text)) != text:
            page.write_text(new)
            sys.stdout.write(f"{page.relative_to(ROOT)} has new tables\n")
