"""Settings: what identifies a config and what only people read."""

from dataclasses import dataclass

from orch.core.settings import canonical, from_dict, setting, to_dict


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    corners: int = setting(3, "number of corners")
    called: str = setting("", "name for people", identity=False)


def test_a_field_without_identity_is_kept_but_neither_compared_nor_hashed_nor_identified():
    plain, named = Shape(corners=4), Shape(corners=4, called="square")
    assert plain == named
    assert hash(plain) == hash(named)
    assert canonical(plain) == canonical(named) == {"corners": 4}
    assert from_dict(Shape, to_dict(named)).called == "square"
    assert Shape(corners=5) != plain
