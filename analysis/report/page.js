// Sorting, filtering and the trials of a cell. The page can be read without any of it.
"use strict";
(() => {
  const number = (text) => {
    const found = text.replace("−", "-").replace(/,/g, "").match(/^[-+±]?\d+(\.\d+)?(e-?\d+)?/);
    return found ? Number(found[0].replace("±", "")) : null;
  };
  const compare = (one, other) => {
    const [a, b] = [number(one), number(other)];
    if (a !== null && b !== null) return a - b;
    if ((a === null) !== (b === null)) return a === null ? 1 : -1;
    return one.localeCompare(other);
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const direction = heading.ariaSort === "ascending" ? -1 : 1;
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
        heading.ariaSort = direction === 1 ? "ascending" : "descending";
        const text = (row) => row.cells[column].textContent.trim();
        body.append(...[...body.rows].sort((a, b) => direction * compare(text(a), text(b))));
      });
    });
  };

  const filtered = (table) => {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Filter rows, such as: lstm parity";
    input.setAttribute("aria-label", "Filter the rows of this table");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    table.parentElement.before(input);
  };

  for (const table of document.querySelectorAll("table.plain")) {
    if (!table.tHead || !table.tBodies.length || table.tBodies[0].rows.length < 2) continue;
    sortable(table);
    if (table.tBodies[0].rows.length > 7) filtered(table);
  }

  // A title is shown only to a mouse; this shows it to fingers and keys as well. Arrows go from cell to cell, so that a
  // table is one stop of the tab key.
  const shown = document.createElement("aside");
  shown.id = "cell";
  shown.hidden = true;
  shown.setAttribute("role", "status");
  document.body.append(shown);
  const show = (cell) => {
    shown.textContent = cell.title;
    shown.hidden = false;
  };
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  for (const table of document.querySelectorAll(".paper-table table")) {
    const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].filter((cell) => cell.title));
    const grid = rows.filter((row) => row.length);
    if (!grid.length) continue;
    for (const cell of grid.flat()) cell.tabIndex = -1;
    grid[0][0].tabIndex = 0;
    table.addEventListener("focusin", (event) => event.target.title && show(event.target));
    table.addEventListener("click", (event) => event.target.closest("td[title]")?.focus());
    table.addEventListener("focusout", () => { shown.hidden = true; });
    table.addEventListener("keydown", (event) => {
      if (event.key === "Escape") shown.hidden = true;
      const step = steps[event.key];
      const row = grid.findIndex((cells) => cells.includes(event.target));
      if (!step || row < 0) return;
      const next = grid[row + step[0]]?.[grid[row].indexOf(event.target) + step[1]];
      if (!next) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }
})();
