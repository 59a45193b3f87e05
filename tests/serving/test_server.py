"""The server of the live page: what it answers, and what it refuses."""

import csv
import io
import time
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from orch.running.lease import Lease
from orch.serving.answer_chart import answer_chart
from orch.serving.routes import LIMITS
from orch.serving.server import HEADERS
from tests.new_process import modules_imported
from tests.serving.small_store import HOSTILE, TRIALS, fail, finish_trials, record_sweep, start_attempt, train


class Code(HTMLParser):
    """Collects everything in a page that a browser would execute."""

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "script":
            self.found.append(values.get("src"))
        self.found += [value for name, value in attributes if name.startswith("on") or name == "style"]
        self.found += [value for value in values.values() if value and value.lower().startswith("javascript:")]

    @classmethod
    def found_in(cls, text):
        parser = cls()
        parser.found = []
        parser.feed(text)
        return parser.found


@pytest.fixture(autouse=True)
def _filled(store):
    record_sweep(store)
    finish_trials(store, TRIALS[:3], accuracy=1.0)
    finish_trials(store, TRIALS[3:4], accuracy=0.25)
    fail(store, TRIALS[5])


def test_every_page_is_served_with_headers_that_allow_no_foreign_code(get):
    paths = ("/", f"/trial/{TRIALS[0].id}", f"/trial/{TRIALS[5].id}", f"/trial/{TRIALS[9].id}", "/query", "/style.css")
    for path in (*paths, *(f"/table/{name}" for name in ("trials", "cells", "comparison", "attempts", "plan"))):
        status, headers, text = get(path)
        assert status == 200, f"{path}: {text}"
        assert {name: headers[name] for name in HEADERS} == HEADERS, path
        assert Code.found_in(text) == ([] if path == "/style.css" else ["/live.js"]), path


def test_text_of_an_error_is_never_markup(get):
    for path in ("/", f"/trial/{TRIALS[5].id}", "/table/attempts"):
        text = get(path)[2]
        assert "owned" in text
        assert "<img" not in text
        assert "<script>" not in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8470", "127.0.0.1.evil.example", "localhost:80:80", ""])
def test_another_host_name_is_refused_so_that_dns_rebinding_reads_nothing(get, host):
    status, _, text = get("/", headers={"Host": host})
    assert status == 421
    assert "demo" not in text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9000", "LOCALHOST:1", "[::1]:8470"])
def test_a_forwarded_port_is_served(get, host):
    assert get("/style.css", headers={"Host": host})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT"])
def test_nothing_but_reading_is_answered(get, method):
    status, headers, _ = get("/query", method=method, sql="SELECT 1")
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


def test_a_query_is_answered_with_a_chart_and_not_for_pages_of_other_sites(get):
    sql = "SELECT model, max(ood_accuracy) AS best FROM trials GROUP BY model ORDER BY best"
    status, _, text = get("/query", sql=sql)
    assert status == 200
    assert '<svg class="chart"' in text
    assert "bilinear" in text
    for path in ("/query", "/download/query.csv"):
        status, _, text = get(path, headers={"Sec-Fetch-Site": "cross-site"}, sql=sql)
        assert status == 403
        assert "bilinear" not in text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY trials TO '/tmp/stolen.csv'",
        "DROP TABLE trials",
        "SELECT 1; SELECT 2",
        "SET memory_limit = '100GB'",
        "ATTACH '/tmp/other.db'",
        "SELECT getenv('HOME')",
        "INSTALL httpfs",
    ],
)
def test_hostile_sql_is_refused_in_words(get, sql):
    status, _, text = get("/query", sql=sql)
    assert status == 400
    assert 'role="alert"' in text
    assert "root:" not in text


def test_a_query_stops_in_time_and_a_huge_answer_is_cut(get, monkeypatch):
    monkeypatch.setattr("orch.serving.routes.LIMITS", replace(LIMITS, seconds=0.3, rows=50, memory="200MB"))
    began = time.monotonic()
    status, _, text = get("/query", sql="SELECT count(*) FROM range(10000000) a, range(10000000) b")
    assert (status, "took longer than 0.3 s" in text) == (400, True)
    assert time.monotonic() - began < 20
    # One call of a function, which DuckDB can neither interrupt nor count.
    status, _, text = get("/query", sql="SELECT length(repeat('x', 2000000000))")
    assert (status, "took longer than" in text or "more than 200MB of memory" in text) == (400, True)
    monkeypatch.setattr("orch.serving.routes.LIMITS", replace(LIMITS, rows=50, memory="200MB"))
    status, _, text = get("/query", sql="SELECT * FROM range(10000000000)")
    assert status == 200
    assert "The first 50 rows" in text


def test_a_store_of_a_protocol_has_a_plan_and_says_why_nothing_is_compared(get):
    status, _, text = get("/table/plan", scale="smoke:word-problem")
    assert (status, "leaves out sweeps that this protocol cannot run" in text) == (200, True)
    status, _, text = get("/query", sql="SELECT DISTINCT unnest(sweeps) FROM plan", scale="smoke:word-problem")
    assert status == 200
    assert "main" in text
    assert "data-efficiency" not in text
    assert "not compared under a protocol" in get("/table/comparison", scale="smoke:word-problem")[2]


def test_tables_are_sorted_filtered_and_downloaded_alike(get):
    status, _, page = get("/table/trials", sort="ood_accuracy", filter="bilinear")
    assert status == 200
    status, headers, text = get("/download/trials.csv", sort="ood_accuracy", order="down", filter="modular_addition")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["ood_accuracy"]) for row in rows] == [1.0, 1.0, 1.0, 0.25]
    assert "attachment" in headers["Content-Disposition"]
    assert len(list(csv.DictReader(io.StringIO(get("/download/trials.csv", filter=TRIALS[3].id)[2])))) == 1
    assert get("/download/trials.parquet")[2].startswith("PAR1")
    status, _, text = get("/table/trials", sort="nothing")
    assert status == 400
    assert "nothing" in text
    assert get("/download/query.csv", sql="SELECT 1 AS one")[2] == "one\n1\n"
    assert page.count("<tr>") < 6


def test_a_trial_says_how_to_run_it_again_and_what_its_cell_has(get, store):
    text = get(f"/trial/{TRIALS[0].id}")[2]
    assert f"orch train --trial {TRIALS[0].id} --store {store.uri}" in text
    assert TRIALS[1].id in text, "the other learning rate of its cell"
    assert '<svg class="chart"' in text
    assert "seeds that learned: 1 of 1 (0.21–1.00)" in get("/")[2]
    assert get("/trial/ffffffffffffffff")[0] == 400
    assert get("/trial/../../etc/passwd")[0] == 404
    assert get("/nowhere")[0] == 404
    assert get("/query?" + "a=1&" * 50)[0] == 400


def test_a_stream_sends_a_growing_curve_and_then_only_what_changes(server, store):
    routes = server.routes
    version = routes._reader.read().version
    news = (each for each in routes.changes("/", version) if each is not None)
    with Lease(store, "demo") as lease:
        start_attempt(store, lease, TRIALS[7])
        train(store, lease, TRIALS[7], num_points=2)
        name, part = next(news)
        parts = {part["id"]: part["html"]}
        while "part-running" not in parts:
            part = next(news)[1]
            parts[part["id"]] = part["html"]
        assert "2 validations" in parts["part-running"]
        assert HOSTILE not in str(parts)
        train(store, lease, TRIALS[7], num_points=3)
        changed = {}
        while "part-running" not in changed:
            part = next(news)[1]
            changed[part["id"]] = part["html"]
        assert "3 validations" in changed["part-running"]
        assert "part-claims" not in changed
    assert name == "part"


def test_the_page_needs_no_torch_and_no_ray(store):
    program = (
        "from orch.serving.overview import OverviewReader\nfrom orch.serving.routes import Routes\n"
        "from orch.store import Store\n"
        f"assert Routes(OverviewReader(Store.open({store.uri!r}))).answer('/', {{}}).status == 200"
    )
    assert modules_imported(program, {"torch", "ray", "transformers", "matplotlib", "pandas"}) == set()


def test_charts_suit_the_columns_of_an_answer():
    bars = answer_chart(pa.table({"model": ["a<b", "c"], "modulus": [2, 3], "best": [0.5, -0.5]}))
    assert "a&lt;b 2: 0.5" in bars
    lines = answer_chart(pa.table({"model": ["a"] * 3 + ["b"] * 3, "step": [1, 2, 3] * 2, "loss": [3.0, 2.0, 1.0] * 2}))
    assert lines.count('class="line c') == 4, "two lines and their legend"
    assert answer_chart(pa.table({"only": ["text", "more"]})) == ""
    assert answer_chart(pa.table({"x": [float("nan"), 1.0, 2.0, 3.0], "y": [1.0, float("inf"), 2.0, 3.0]})) == ""
