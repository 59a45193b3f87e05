"""A query in a process of its own, which the system ends at its limits of time and memory.

DuckDB cannot interrupt a single call of a function, nor does its memory limit count the text that one returns:
`repeat('x', 500000000)` would hold up, or end, the process that asks. The tables and the answer are files of Arrow's.
"""

import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from orch.core.scratch import scratch_folder

_SIZES = {"MB": 10**6, "GB": 10**9}
_SPARE_BYTES = 10**9
"""Address space that Python, Arrow and DuckDB reserve beside the memory of a query."""
_QUESTION, _ANSWER, _ERROR = "question.json", "answer", "error.json"


def answer_in_process(sql: str, tables: Mapping[str, pa.Table], seconds: float, memory: str, rows: int) -> pa.Table:
    """Run a statement over these tables and return its first rows; raise the error that DuckDB would raise."""
    with scratch_folder("query") as folder:
        for number, table in enumerate(tables.values()):
            _write(table, folder / str(number))
        question = {"sql": sql, "tables": list(tables), "seconds": seconds, "memory": memory, "rows": rows}
        (folder / _QUESTION).write_text(json.dumps(question))
        # -P: a module in the folder where the server was started must not take the place of one of ours.
        command = [sys.executable, "-P", "-m", __name__, str(folder)]
        code = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        if code == -signal.SIGALRM:
            raise duckdb.InterruptException("the time is over")
        if (folder / _ERROR).exists():
            kind, text = json.loads((folder / _ERROR).read_text())
            raise getattr(duckdb, kind, duckdb.Error)(text)
        if code != 0:  # whatever cannot allocate ends the process in its own way
            raise duckdb.OutOfMemoryException("the process of the query ended")
        with pa.OSFile(str(folder / _ANSWER)) as file, pa.ipc.open_file(file) as reader:
            return reader.read_all()


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _main(folder: Path) -> None:
    from orch.analysis.query import Limits, first_rows, sandbox

    asked = json.loads((folder / _QUESTION).read_text())
    tables = [pa.ipc.open_file(pa.memory_map(str(folder / str(n)))).read_all() for n in range(len(asked["tables"]))]
    with sandbox(Limits(memory=asked["memory"], threads=1)) as connection:
        for name, table in zip(asked["tables"], tables, strict=True):
            connection.register(name, table)
        most = _bytes_in_use() + _bytes(asked["memory"]) + _SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        most_written = _bytes(asked["memory"]) // 4  # the answer goes into the memory of the process that asks
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_written, most_written))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it is in the middle of
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"])
        try:
            answer = first_rows(connection.sql(asked["sql"]).to_arrow_reader(), asked["rows"])
        except duckdb.Error as error:
            (folder / _ERROR).write_text(json.dumps([type(error).__name__, str(error)]))
            return
        _write(answer, folder / _ANSWER)


def _bytes(memory: str) -> int:
    found = re.fullmatch(r"(\d+)([MG]B)", memory)
    assert found, f"{memory} is no number of MB or GB"
    return int(found[1]) * _SIZES[found[2]]


def _bytes_in_use() -> int:
    """Return the address space of this process; 0 where the system does not say."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[0]) * resource.getpagesize() if path.exists() else 0


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
