"""The live page in a real browser: it changes by itself, and nothing of a store is ever executed."""

from orch.running.lease import Lease
from tests.browser_session import open_browser
from tests.serving.small_store import TRIALS, fail, finish_trials, record_sweep, start_attempt, train


def test_the_page_fills_by_itself_and_runs_no_foreign_code(store, server):
    record_sweep(store)
    finish_trials(store, TRIALS[:1])
    with open_browser() as page, Lease(store, "demo") as lease:
        page.look(1280)
        page.open(server.address)
        page.wait_for("document.getElementById('live').dataset.state === 'live'")
        page.run("window.same = true")
        filled = "document.querySelectorAll('.tiles td:not(.blank) a').length"
        assert page.run(filled) == 1

        start_attempt(store, lease, TRIALS[7])
        train(store, lease, TRIALS[7], num_points=2)
        page.wait_for("document.querySelector('.card svg[aria-label*=\"2 validations\"]')?.ariaLabel")
        drawn = page.run("document.querySelector('.card .line').getAttribute('d')")
        train(store, lease, TRIALS[7], num_points=6)
        page.wait_for("document.querySelector('.card svg[aria-label*=\"6 validations\"]')?.ariaLabel")
        grown = page.run("document.querySelector('.card .line').getAttribute('d')")
        assert len(grown) > len(drawn), "the curve has grown"

        parity = [each for each in TRIALS if each.task.modulus == 2 and each.model.summary == "block size 1"]
        finish_trials(store, parity)
        page.wait_for(f"{filled} === 2")
        page.wait_for("document.querySelector('.turned .now')?.textContent.includes('not enough data → supported')")

        fail(store, TRIALS[15])
        page.wait_for("document.querySelector('.failure')?.textContent.includes('owned')")
        page.run("document.querySelector('.failure').open = true")
        fail(store, TRIALS[17])
        page.wait_for("document.querySelector('.failure b').textContent === '2 trials'")
        assert page.run("document.querySelector('.failure').open"), "what a reader opened stays open"
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("document.title") != "owned"
        assert page.run("window.same"), "the page was never loaded again"

        page.open(f"{server.address}query")
        page.run("document.querySelector('textarea').value = 'SELECT model, count(*) AS n FROM trials GROUP BY ALL'")
        page.run("document.querySelector('form.query').requestSubmit()")
        page.wait_for("document.querySelectorAll('svg.chart rect.block').length === 2")
        page.run("document.querySelector('textarea').value = \"SELECT * FROM read_text('/etc/passwd')\"")
        page.run("document.querySelector('form.query').requestSubmit()")
        refusal = page.wait_for("document.querySelector('[role=alert]')?.textContent")
        assert "not allowed" in refusal

        page.look(390, dark=True)
        for path in ("", f"trial/{TRIALS[0].id}", "table/trials", "query"):
            page.open(f"{server.address}{path}")
            assert page.run("document.documentElement.scrollWidth") <= 390, f"/{path} is wider than a phone"
        refused = [text for text in page.messages if "400" not in text]
        assert refused == [], "the page keeps to its own content security policy"
