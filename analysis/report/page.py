"""A report as one HTML page: styles and figures are inside it, and it asks nothing of the network."""

from importlib import resources

from orch.analysis.agreement import agreement
from orch.analysis.figures import Drawing, Gallery, svg_element
from orch.analysis.published import TABLES
from orch.analysis.report.claims import claims_section
from orch.analysis.report.collect import CellResult, Origin, StudyReport, SweepResult
from orch.analysis.report.html import Markup, element, join, table
from orch.analysis.report.reproduction import reproduction_section
from orch.analysis.tables import render, stylesheet
from orch.running.progress import duration
from orch.store.bundled import BUNDLED

NUMBERS_MET = "How far the published numbers are met"
MOST_IDS = 12


def page(report: StudyReport, gallery: Gallery) -> str:
    sections = [
        *([("claims", "The paper's claims", claims_section(report.claims))] if report.claims else []),
        *([("numbers", NUMBERS_MET, reproduction_section(report.comparisons))] if report.comparisons else []),
        ("results", "Results by sweep", _sweeps(report, gallery)),
        ("failures", "Failures", _failures(report)),
        ("provenance", "What it ran on", _origins(report)),
        ("reproduce", "Every number and how to get it again", _reproduce(report)),
    ]
    links = element("ul", *(element("li", element("a", title, href=f"#{key}")) for key, title, _ in sections))
    body = join(element("section", element("h2", title), content, id=key) for key, title, content in sections)
    style = Markup(resources.files("orch.analysis.report").joinpath("page.css").read_text() + stylesheet())
    names = ", ".join(sweep.name for sweep in report.sweeps)
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", f"{names} at {report.scale.name} scale"),
        element("style", style),
    )
    made = f"{report.made_at:%Y-%m-%d %H:%M} UTC by orch {report.version}, from {report.location}"
    top = element(
        "header",
        element("h1", "Which sequence models can track state?"),
        element("p", f"{names} at {report.scale.name} scale ({report.scale.about}); made {made}", class_="soft"),
        _facts(report),
    )
    whole = element("html", head, element("body", top, element("nav", links), element("main", body)), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _facts(report: StudyReport) -> Markup:
    failed = len({trial_id for group in report.failures for trial_id in group.trial_ids} & report.trial_ids)
    facts = [
        (f"{report.num_done:,} of {report.num_planned:,}", "trials finished"),
        (f"{failed:,}", "trials failed"),
        (duration(sum(origin.seconds for origin in report.origins)), "of training and testing"),
        (f"{len({origin.host for origin in report.origins}):,}", "machines"),
    ]
    if report.comparisons:
        found = agreement(report.comparisons)
        facts.insert(1, (f"{found.num_ours:,} of {found.num_distinct:,}", "published numbers have ours beside them"))
        facts.insert(2, (f"{found.num_within:,}", f"of them agree within {found.tolerance:g}"))
    return element("ul", *(element("li", element("b", value), about) for value, about in facts), class_="facts")


def _sweeps(report: StudyReport, gallery: Gallery) -> Markup:
    parts = []
    for sweep in report.sweeps:
        told = (
            f"{sweep.title}. Reproduces {sweep.reproduces}. {sweep.num_done:,} of {sweep.num_planned:,} trials finished"
        )
        told += f", {sweep.num_failed:,} failed." if sweep.num_failed else "."
        parts.append(element("h3", sweep.name, id=f"sweep-{sweep.name}"))
        parts.append(element("p", told))
        tables = [
            render(name, report.comparisons, report.scale, "html")
            for name, table in TABLES.items()
            if table.sweep == sweep.name
        ]
        parts += [Markup(text) for text in tables] or [_cell_table(sweep)]
        parts += [_figure(each) for each in gallery.drawings if each.sweep == sweep.name]
    parts += [element("p", f"Not drawn: {name}: {reason}.", class_="soft") for name, reason in gallery.left_out.items()]
    return join(parts)


def _cell_table(sweep: SweepResult) -> Markup:
    """For sweeps without published numbers: our own reading and the paper's, cell by cell."""
    headers = [
        "model",
        "task",
        "settings",
        "at test length",
        "seeds",
        "best",
        "in validation",
        "learning rate",
        "remark",
    ]
    rows = [_cell_row(each) for each in sweep.cells]
    return table(headers, rows, numbers=headers[3:8])


def _cell_row(each: CellResult) -> list[str]:
    trial, summary = each.cell.example, each.summary
    names = [
        trial.model.title_of(each.cell.variant),
        trial.task.title_of(trial.task.modulus),
        each.settings,
    ]
    if summary.scores is None:
        return [*names, "", "", "", "", "", summary.remark]
    far, near = summary.scores["ood"], summary.scores["validation"]
    spread = "" if far.spread is None else f" ± {far.spread:.2f}"
    numbers = [f"{far.mean:.2f}{spread}", str(summary.num_seeds), f"{far.best:.2f}", f"{near.mean:.2f}"]
    return [*names, *numbers, f"{summary.learning_rate:g}", summary.remark]


def _figure(drawing: Drawing) -> Markup:
    caption = element("figcaption", element("b", f"{drawing.title}. "), drawing.caption)
    svg = Markup(svg_element(drawing.figure, drawing.name, drawing.title))
    return element("figure", element("div", svg), caption)


def _failures(report: StudyReport) -> Markup:
    if not report.failures:
        return element("p", "Every trial that was started has finished, or is still under way.")
    parts = []
    for group in report.failures:
        ids = ", ".join(group.trial_ids[:MOST_IDS])
        more = f" and {len(group.trial_ids) - MOST_IDS:,} more" if len(group.trial_ids) > MOST_IDS else ""
        count = f"{len(group.trial_ids):,} trial{'s' * (len(group.trial_ids) != 1)}"
        parts.append(
            element(
                "details",
                element("summary", element("b", group.signature), f": {count}, last {group.last_at}. {group.message}"),
                element("p", f"Trials: {ids}{more}"),
                element("pre", group.traceback) if group.traceback else "",
            )
        )
    parts.append(element("p", "They are tried again by ", element("code", "orch resume"), "."))
    return join(parts)


def _origins(report: StudyReport) -> Markup:
    if not report.origins:
        return element("p", "Nothing has finished yet.")
    headers = ["machine", "device", "threads", "trials", "time", "from", "to", "code", "packages"]
    return table(headers, (_origin_row(origin) for origin in report.origins), numbers=["threads", "trials", "time"])


def _origin_row(origin: Origin) -> list[str]:
    commit = (origin.git_commit or "not a checkout")[:12] + (" with edits" if origin.git_dirty else "")
    packages = ", ".join(f"{name} {version}" for name, version in origin.packages.items())
    if origin.mamba_kernel:
        packages += f"; Mamba scan: {origin.mamba_kernel}"
    return [
        origin.host,
        origin.device,
        str(origin.threads),
        f"{origin.num_trials:,}",
        duration(origin.seconds),
        f"{origin.first:%Y-%m-%d %H:%M}",
        f"{origin.last:%Y-%m-%d %H:%M}",
        commit,
        packages,
    ]


def _reproduce(report: StudyReport) -> Markup:
    intro = element(
        "p",
        "Each line is one cell: the best of its trials, whose id is given, and the mean over seeds at the learning rate"
        " chosen by accuracy at 100 inputs. To train one trial again, alone: ",
        element("code", f"orch train --trial ID --store {report.location}"),
        ". To see all that is known of it: ",
        element("code", f"orch query \"SELECT * FROM trials WHERE trial_id = 'ID'\" --store {report.location}"),
        ".",
    )
    parts: list[Markup] = [intro]
    for sweep in report.sweeps:
        command = f"orch sweep {sweep.name} --scale {report.scale.name}"
        command += "" if report.location == BUNDLED else f" --store {report.location}"
        rows = [
            [*_cell_row(each)[:6], each.summary.scores["ood"].best_trial]
            for each in sweep.cells
            if each.summary.scores is not None
        ]
        headers = ["model", "task", "settings", "at test length", "seeds", "best", "best trial"]
        parts.append(
            element(
                "details",
                element("summary", element("b", sweep.name), f": {len(rows):,} cells, from ", element("code", command)),
                table(headers, rows, numbers=headers[3:6]),
            )
        )
    return join(parts)
