"""The kinds of hostile inputs. Each is a strategy of plans."""

from hypothesis import strategies as st

from tests.hostile.file_inputs import files
from tests.hostile.launcher_inputs import launchers
from tests.hostile.option_inputs import options
from tests.hostile.plan import Plan
from tests.hostile.query_inputs import sql
from tests.hostile.store_inputs import parts, records

KINDS: dict[str, st.SearchStrategy[Plan]] = {
    "options": options(),
    "files": files(),
    "SQL": sql(),
    "launcher files": launchers(),
    "records": records(),
    "parts": parts(),
}
