"""Any text as LaTeX that compiles with pdflatex and shows the same characters."""

import re
import unicodedata

from orch.core.printable import printable

_BETWEEN_HYPHENS = "\0"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    _BETWEEN_HYPHENS: "{}",  # two hyphens would become a dash
    "[": "{[}",  # after \\ a bracket or a star would be an argument of it
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\ne$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "…": r"\dots{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
}
_GREEK = re.compile("GREEK (SMALL|CAPITAL) LETTER (GAMMA|DELTA|THETA|LAMDA|XI|PI|SIGMA|PHI|PSI|OMEGA)")
_SMALL_GREEK = re.compile("GREEK SMALL LETTER (ALPHA|BETA|EPSILON|ZETA|ETA|IOTA|KAPPA|MU|NU|RHO|TAU|CHI|UPSILON)")
_LAST_KNOWN = "\u017e"
"""The last letter of the Latin blocks that LaTeX knows without further packages."""


def escape(text: str) -> str:
    """Escape a text, so that no character means something else to LaTeX or stops it.

    >>> escape("50% of m_1 -- [sic]")
    '50\\\\% of m\\\\_1 -{}- {[}sic{]}'
    """
    characters = [_escaped(character) for character in re.sub("-(?=-)", f"-{_BETWEEN_HYPHENS}", printable(text))]
    return "".join(characters)


def label(name: str) -> str:
    r"""Return a name for \label, of letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _escaped(character: str) -> str:
    known = _SPECIAL.get(character)
    if known is not None:
        return known
    if character <= _LAST_KNOWN:
        return character
    name = unicodedata.name(character, "")
    if found := _GREEK.fullmatch(name) or _SMALL_GREEK.fullmatch(name):
        letter = found[found.lastindex or 1].lower().replace("lamda", "lambda")
        return rf"$\{letter.capitalize() if 'CAPITAL' in name else letter}$"
    plain = unicodedata.normalize("NFKD", character)
    if plain != character and plain.isascii():
        return "".join(map(_escaped, plain))
    return f"U+{ord(character):04X}"
