"""The addresses of the live page, and what each of them answers."""

import io
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orch.analysis.arrow_tables import description
from orch.analysis.query import Limits
from orch.analysis.study import VIEWS, Study, view_schema
from orch.analysis.table_formats import write_csv
from orch.core.errors import OrchError
from orch.serving import pages
from orch.serving.answer_chart import answer_chart
from orch.serving.overview import Overview, OverviewReader
from orch.serving.table_page import SHOWN, Selection, select, turn_to
from orch.serving.trial_details import read_trial
from orch.sweeps.scales import SCALES, find_scale, is_scale

LIMITS = Limits(seconds=10.0, rows=10_000, memory="1GB", threads=1, own_process=True)
DOWNLOAD_LIMITS = Limits(seconds=60.0, rows=2_000_000, memory="1GB", threads=1, own_process=True)
QUIET_SECONDS = 15.0
"""A stream without news says so this often."""
_TRIAL = re.compile(r"/trial/([0-9a-zA-Z_-]{1,64})")
_TABLE = re.compile(r"/table/([a-z]+)")
_DOWNLOAD = re.compile(r"/download/([a-z]+)\.(csv|parquet)")
ABOUT = {
    "trials": "A row for each finished trial: settings, scores, times, where it ran.",
    "cells": "Finished trials by cell, which is every setting but the learning rate and the seeds: the best, and the"
    " mean over the seeds of the chosen learning rate.",
    "comparison": "Our numbers beside the published ones.",
    "attempts": "A row when an attempt at a trial starts and one when it ends, with its error if it failed.",
    "plan": "Every trial of the paper's sweeps, with its state.",
}
UNDER_PROTOCOL = {
    "comparison": " At {scale} there are none: published numbers are not compared under a protocol,"
    " because they are those of the sweeps without one.",
    "plan": " At {scale} it leaves out sweeps that this protocol cannot run.",
}
"""What a page says in addition about a scale under a protocol."""
EXAMPLES = (
    ("Best accuracy by model", "SELECT model, max(ood_accuracy) AS best FROM trials GROUP BY model ORDER BY best DESC"),
    (
        "Accuracy by length",
        "SELECT model, c.length, avg(c.accuracy) AS accuracy FROM (SELECT model, unnest(length_curve) AS c FROM trials"
        " WHERE model IN ('lstm', 'rnn', 'bilinear', 'mamba', 'transformer')) GROUP BY ALL ORDER BY ALL",
    ),
    (
        "Learning curves by model",
        "SELECT model, step, avg(c.validation_accuracy) AS accuracy FROM curves c JOIN trials t USING (trial_id)"
        " WHERE step <= 5000 AND step % 500 = 0 AND model IN ('lstm', 'rnn', 'bilinear', 'mamba', 'transformer')"
        " GROUP BY ALL ORDER BY ALL",
    ),
    ("Why trials ended", "SELECT stop_reason, count(*) AS trials FROM trials GROUP BY ALL ORDER BY trials DESC"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK
    file_name: str = ""
    """The name under which a browser saves it; empty for a page."""

    @classmethod
    def plain(cls, text: str, status: HTTPStatus) -> "Answer":
        return cls(f"{text}\n".encode(), "text/plain; charset=utf-8", status)


class Routes:
    """Answers the requests for one store."""

    def __init__(self, reader: OverviewReader):
        self._reader = reader
        self.closing = threading.Event()
        """Ends every stream once it is set."""
        self._study = Study(reader.store)  # they share what was read
        self._location = reader.store.location
        self._files: dict[str, Callable[[], Answer]] = {
            "/style.css": lambda: Answer(pages.stylesheet().encode(), "text/css; charset=utf-8"),
            "/live.js": lambda: Answer(pages.script().encode(), "text/javascript; charset=utf-8"),
            "/icon.svg": lambda: Answer(pages.icon().encode(), "image/svg+xml"),
        }

    def answer(self, path: str, query: Mapping[str, str], from_elsewhere: bool = False) -> Answer:
        """Return what an address shows; `from_elsewhere` if a page of another site asks for it."""
        try:
            return self._route(path, query, from_elsewhere)
        except OrchError as error:
            return self._message("That did not work", str(error), HTTPStatus.BAD_REQUEST)

    def _route(self, path: str, query: Mapping[str, str], from_elsewhere: bool) -> Answer:
        if path in self._files:
            return self._files[path]()
        if path == "/":
            return _html(pages.overview_page(self._reader.read()))
        if found := _TRIAL.fullmatch(path):
            details = read_trial(self._reader.store, found[1], self._reader.read())
            return _html(pages.trial_page(self._location, details))
        if (found := _TABLE.fullmatch(path)) and found[1] in pages.TABLES:
            return self._table(found[1], query)
        if path == "/query" or path.startswith("/download/"):
            if from_elsewhere and query:
                text = "A query from another site is not run: type it into this page."
                return self._message("Not from here", text, HTTPStatus.FORBIDDEN)
            if path == "/query":
                return self._query(query)
            if (found := _DOWNLOAD.fullmatch(path)) and found[1] in (*pages.TABLES, "query"):
                return self._download(found[1], found[2], query)
        return self._message("Not found", f"There is no page {path} here.", HTTPStatus.NOT_FOUND)

    def _message(self, title: str, message: str, status: HTTPStatus) -> Answer:
        return _html(pages.page("message", self._location, title, message=message), status)

    def _scale(self, query: Mapping[str, str]) -> str:
        given = query.get("scale", "")
        return given if is_scale(given) else self._reader.read().results.scale

    def _table(self, view: str, query: Mapping[str, str]) -> Answer:
        scale = self._scale(query)
        table = turn_to(self._study.view(view, scale), Selection.read(query, view), SHOWN[view])
        about = ABOUT[view]
        if find_scale(scale).protocol is not None and view in UNDER_PROTOCOL:
            about += UNDER_PROTOCOL[view].format(scale=scale)
        text = pages.page("table", self._location, view.capitalize(), view=view, table=table, about=about)
        return _html(text)

    def _query(self, query: Mapping[str, str]) -> Answer:
        sql, scale = query.get("sql", "").strip(), self._scale(query)
        values: dict[str, Any] = {"sql": sql, "scale": scale, "error": "", "table": None, "chart": "", "cut": False}
        status = HTTPStatus.OK
        if sql:
            try:
                answer = self._study.ask(sql, scale, {}, LIMITS)
                values |= {"table": turn_to(answer, Selection.read(query)), "chart": answer_chart(answer)}
                values["cut"] = answer.num_rows == LIMITS.rows
            except OrchError as error:
                values["error"], status = str(error), HTTPStatus.BAD_REQUEST
        views = {name: [(field.name, description(field)) for field in view_schema(name)] for name in VIEWS}
        values["scales"] = list(dict.fromkeys([*SCALES, scale]))
        text = pages.page("query", self._location, "Query", **values, views=views, examples=EXAMPLES, limits=LIMITS)
        return _html(text, status)

    def _download(self, name: str, suffix: str, query: Mapping[str, str]) -> Answer:
        if name == "query":
            table = self._study.ask(query.get("sql", ""), self._scale(query), {}, DOWNLOAD_LIMITS)
        else:
            table = self._study.view(name, self._scale(query))
        table = select(table, Selection.read(query, name))
        if suffix == "parquet":
            return Answer(_parquet(table), "application/vnd.apache.parquet", file_name=f"{name}.parquet")
        text = io.StringIO()
        write_csv(table, text)
        return Answer(text.getvalue().encode(), "text/csv; charset=utf-8", file_name=f"{name}.csv")

    def changes(self, page: str, version: str = "") -> Iterator[tuple[str, Any] | None]:
        """Yield the parts of a page that have changed, as they change; None now and then while nothing does.

        The first round yields every part, unless the browser has the present `version` of the page.
        """
        sent: dict[str, pages.Part] = {}
        spoke_at = time.monotonic()
        seen: Overview | None = None
        yield None
        while not self.closing.is_set():
            try:
                overview = self._reader.read()
                parts = self._parts(page, overview) if overview is not seen else {}
                known = seen is None and overview.version == version
                seen = overview
            except OrchError as error:
                yield "problem", str(error)
                parts, known, spoke_at = {}, False, time.monotonic()
            for name, part in parts.items():
                for place, html in () if known else _differences(name, sent.get(name), part):
                    spoke_at = time.monotonic()
                    yield "part", {"id": place, "html": html}
                sent[name] = part
            if time.monotonic() - spoke_at > QUIET_SECONDS:
                spoke_at = time.monotonic()
                yield None
            self.closing.wait(self._reader.seconds / 2)

    def _parts(self, page: str, overview: Overview) -> dict[str, pages.Part]:
        if page == "/":
            return pages.overview_parts(overview)
        if found := _TRIAL.fullmatch(page):
            return {"part-trial": pages.Part(pages.trial_part(read_trial(self._reader.store, found[1], overview)))}
        return {}


def _differences(name: str, before: pages.Part | None, after: pages.Part) -> Iterator[tuple[str, str]]:
    """Yield what to replace: the children that changed if they are the same ones as before, or the whole part."""
    if before is not None and after.children and before.children.keys() == after.children.keys():
        yield from (each for each in after.children.items() if before.children[each[0]] != each[1])
    elif before is None or before.html != after.html:
        yield name, after.html


def _html(text: str, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(text.encode(), status=status)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
