// Replaces parts of a page when the server sends new ones. Everything is rendered, and escaped, by the server.
"use strict";

const path = document.body.dataset.events;
const lamp = document.getElementById("live");
// The page as it was sent is up to date until something changes; after a pause everything is sent again.
let version = document.body.dataset.version;
let source = null;

function show(state, words) {
  if (!lamp) return;
  lamp.dataset.state = state;
  lamp.lastElementChild.textContent = words;
}

// The elements of a part by their keys: which of them are open, and what they say.
function remember(part) {
  const known = new Map();
  for (const element of part.querySelectorAll("[data-key]")) {
    known.set(element.dataset.key, { open: element.open, text: element.textContent, place: element.scrollLeft });
  }
  return known;
}

function replace(id, html) {
  const part = document.getElementById(id);
  if (!part) return;
  const before = remember(part);
  const scrolled = [...part.querySelectorAll(".wide")].map((element) => element.scrollLeft);
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  for (const element of fresh.content.querySelectorAll("[data-key]")) {
    const old = before.get(element.dataset.key);
    if (old && element.tagName === "DETAILS") element.open = old.open;
    else if (before.size && element.tagName !== "DETAILS" && (!old || old.text !== element.textContent)) {
      element.classList.add("changed");
    }
  }
  part.replaceChildren(fresh.content);
  [...part.querySelectorAll(".wide")].forEach((element, place) => { element.scrollLeft = scrolled[place] || 0; });
}

function connect() {
  if (source || !path) return;
  source = new EventSource("/events?page=" + encodeURIComponent(path) + "&version=" + (version || ""));
  version = "";
  source.addEventListener("open", () => show("live", "live"));
  source.addEventListener("error", () => show("lost", "reconnecting"));
  source.addEventListener("part", (event) => {
    show("live", "live");
    const part = JSON.parse(event.data);
    replace(part.id, part.html);
  });
  source.addEventListener("problem", (event) => show("lost", JSON.parse(event.data)));
}

function disconnect() {
  if (source) source.close();
  source = null;
  show("waiting", "paused");
}

// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
connect();

// Ctrl-Enter runs a query.
document.querySelector("form.query textarea")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
});

// A touch screen cannot point: a tap on a tile shows what pointing shows, with a link to its trial.
let tip = null;
document.addEventListener("click", (event) => {
  if (tip && tip.contains(event.target)) return;
  tip?.remove();
  tip = null;
  const tile = event.target.closest?.(".tiles td a[title]");
  if (!tile || !matchMedia("(hover: none)").matches) return;
  event.preventDefault();
  tip = document.createElement("div");
  tip.className = "note-of-tile";
  tip.setAttribute("role", "status");
  tip.textContent = tile.title;
  const link = document.createElement("a");
  link.href = tile.href;
  link.textContent = "open the trial";
  tip.append(link);
  document.body.append(tip);
});
