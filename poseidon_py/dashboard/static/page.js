// The pages, by the address after "#": which one is shown, and when it is asked for again.

import { forgetCharts } from "./charts.js";
import { follow } from "./data.js";
import { address, element } from "./dom.js";
import { jobPage, gangPage, podPage } from "./details.js";
import { gangsPage, jobsPage, podsPage } from "./jobs.js";
import { networkPage } from "./network.js";
import { nodePage, nodesPage } from "./nodes.js";
import { overviewPage } from "./overview.js";
import { queuePage, queuesPage } from "./queues.js";
import { roundsPage } from "./rounds.js";
import { clock, count, span } from "./text.js";

const TABS = [
  ["overview", "Overview"], ["jobs", "Jobs"], ["gangs", "Gangs"], ["pods", "Pods"], ["queues", "Queues"],
  ["nodes", "Nodes"], ["rounds", "Rounds"], ["network", "Network"],
];
const PAGES = {
  overview: overviewPage, jobs: jobsPage, gangs: gangsPage, pods: podsPage, queues: queuesPage, nodes: nodesPage,
  rounds: roundsPage, network: networkPage, job: jobPage, gang: gangPage, pod: podPage, queue: queuePage, node: nodePage,
};
const ABOVE = { job: "jobs", gang: "gangs", pod: "pods", queue: "queues", node: "nodes" };
const LEAST_PAUSE = 2000;
const LONGEST_PAUSE = 15000;

const main = document.getElementById("main");
const live = document.getElementById("live");
let shown = { page: "", query: "" };
let show = null;
let asked = null;
let refreshed = 0;
let last = "";
let painted = false;

function where() {
  const [page, query = ""] = location.hash.slice(1).split("?");
  return { page: PAGES[page] ? page : "overview", query };
}

// A page is a function (parameters, change) => {title, refresh: async (signal) => [elements]}.
function open() {
  const { page, query } = where();
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const moved = page !== shown.page;
  shown = { page, query };
  const change = (changes, replace = false) => {
    const hash = address(page, { ...parameters, ...changes });
    if (replace) history.replaceState(null, "", hash), open();
    else location.hash = hash;
  };
  show = PAGES[page](parameters, change);
  for (const tab of document.querySelectorAll("#tabs a")) {
    if (tab.dataset.page === (ABOVE[page] ?? page)) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  document.title = `${show.title} – Poseidon`;
  if (moved) {
    main.replaceChildren(element("p", { class: "quiet" }, "Loading …"));
    scrollTo(0, 0);
  }
  refresh();
}

async function refresh() {
  asked?.abort();
  const mine = asked = new AbortController();
  refreshed = performance.now();
  main.setAttribute("aria-busy", "true");
  try {
    const parts = await show.refresh(mine.signal);
    if (asked !== mine) return;
    if (!painted) performance.mark("content");
    painted = true;
    const focus = focused();
    main.replaceChildren(...parts.filter(Boolean));
    focus?.();
    forgetCharts();
  } catch (error) {
    if (asked !== mine || error.name === "AbortError") return;
    main.replaceChildren(element("section", { class: "card" }, element("p", { class: "problem", role: "alert" }, error.message)));
  } finally {
    if (asked === mine) {
      asked = null;
      main.setAttribute("aria-busy", "false");
    }
  }
}

// What has the focus gets it again, with what was selected in it, once the page is drawn anew.
function focused() {
  const active = document.activeElement;
  if (!active || !main.contains(active)) return null;
  const place = focusable().indexOf(active);
  const selection = active.selectionStart !== undefined && active.type === "search" ? [active.value, active.selectionStart, active.selectionEnd] : null;
  return () => {
    const found = focusable()[place];
    if (!found || found.tagName !== active.tagName) return;
    found.focus({ preventScroll: true });
    if (selection) {
      found.value = selection[0];
      found.setSelectionRange(selection[1], selection[2]);
    }
  };
}

const focusable = () => [...main.querySelectorAll("a[href], button, input, select, [tabindex='0']")];

function tick(told) {
  const state = told.not_ready ? `not ready: ${told.not_ready}` : told.leading ? "leads" : "stands by";
  live.className = told.not_ready ? "warn" : "";
  live.textContent = `${state} · ${count(told.placed, "pod")} on ${count(told.nodes, "node")} · ${told.pending.toLocaleString()} waiting · `
    + `round ${told.round.toLocaleString()}${told.seconds === null ? "" : ` (${span(told.seconds)})`}`;
  const now = `${told.survey} ${told.round}`;
  if (now !== last) {
    last = now;
    due();
  }
}

let waiting = 0;
function due() {
  if (waiting || document.hidden) return;
  const pause = Math.max(LEAST_PAUSE - (performance.now() - refreshed), 0);
  waiting = setTimeout(() => {
    waiting = 0;
    if (!asked && !busy()) refresh();
  }, pause);
}

// Nothing is drawn anew under the hands of somebody who chooses or types, or reads a hover text.
function busy() {
  const active = document.activeElement;
  return Boolean(active && main.contains(active) && active.tagName === "SELECT") || Boolean(document.querySelector(".chart:hover"));
}

setInterval(() => {
  if (!document.hidden && performance.now() - refreshed > LONGEST_PAUSE) due();
}, 1000);
document.addEventListener("visibilitychange", () => document.hidden || due());
for (const moved of ["hashchange", "popstate"]) {  // a step in the history is both
  addEventListener(moved, () => {
    const { page, query } = where();
    if (page !== shown.page || query !== shown.query) open();
  });
}

// "/" goes to the search field; left and right change between tabs that have the focus.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
    const field = main.querySelector("input[type=search]");
    if (field) {
      field.focus();
      event.preventDefault();
    }
  }
  const tabs = [...document.querySelectorAll("#tabs a")];
  const at = tabs.indexOf(document.activeElement);
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (at >= 0 && by) tabs[(at + by + tabs.length) % tabs.length].focus();
});

document.getElementById("tabs").append(...TABS.map(([page, title]) =>
  element("li", {}, element("a", { href: `#${page}`, "data-page": page }, title))));
document.getElementById("foot").textContent =
  `Times are those of this browser; opened at ${clock(Date.now() / 1000)}. Keys: Tab and Enter, arrows between pages, / to search.`;
open();
follow(tick, (problem) => {
  live.className = "problem";
  live.textContent = `${problem}; trying again`;
});
