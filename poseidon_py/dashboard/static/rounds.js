// The last rounds, with all figures.

import { draw, place } from "./charts.js";
import { get } from "./data.js";
import { card, element, table } from "./dom.js";
import { ROUND_AXES, roundTraces } from "./overview.js";
import { clock, count, span } from "./text.js";

const SHOWN = 200;
const BESIDE = ["search", "pack-beside"];  // work beside the rounds, which ended with one

export function roundsPage({ before = "", round = "" }, change) {
  return {
    title: "Rounds",
    async refresh(signal) {
      const chosen = round ? { limit: 1, before: Number(round) + 1 } : { limit: SHOWN, before };
      const { count: all, rounds } = await get("rounds", chosen, signal);
      return round ? [one(rounds[0], round, change)] : [chart(rounds), list(rounds, all, change)];
    },
  };
}

function chart(rounds) {
  const times = place("rounds");
  const stages = place("stages");
  if (rounds.length) {
    draw(times, "Time of each round, and pods that it placed", roundTraces(rounds), ROUND_AXES);
    const ordered = [...rounds].reverse();
    const names = largest(ordered).filter((name) => !BESIDE.includes(name));
    const traces = names.map((name) => ({ type: "bar", name, x: ordered.map(({ number }) => number), y: ordered.map((each) => (each.stages[name] ?? 0) * 1000), hovertemplate: `round %{x}: %{y:.1f} ms<extra>${name}</extra>` }));
    draw(stages, "Time of each round by stage", traces, { ...ROUND_AXES, yaxis2: undefined, barmode: "stack" });
  }
  return element("section", { class: "card", "aria-label": "Charts of rounds" },
    element("h2", {}, "Time and placed pods"), rounds.length ? times : element("p", { class: "quiet" }, "There was no round with pending pods yet."),
    rounds.length ? element("h2", {}, "Time by stage") : "", rounds.length ? stages : "",
    rounds.length ? element("p", { class: "note" }, "Searches beside the rounds, which no round waits for, are not part of its time; the page of a round has them.") : "");
}

function largest(rounds) {
  const sums = {};
  for (const { stages } of rounds) for (const [name, seconds] of Object.entries(stages)) sums[name] = (sums[name] ?? 0) + seconds;
  return Object.keys(sums).sort((a, b) => sums[b] - sums[a]).slice(0, 9);
}

function list(rounds, all, change) {
  return card(`The last of ${count(all, "round")}`, "", table("Rounds", [
    { title: "Round", kind: "number", value: ({ number }) => element("a", { href: `#rounds?round=${number}` }, number.toLocaleString()) },
    { title: "Began", kind: "time", value: ({ started_us }) => clock(started_us / 1e6) },
    { title: "Time", kind: "number", value: ({ seconds }) => span(seconds) },
    { title: "Pending", kind: "number", value: ({ pending }) => pending.toLocaleString() },
    { title: "Placed", kind: "number", value: ({ placed }) => placed.toLocaleString() },
    { title: "Wait", kind: "number", value: ({ waiting }) => waiting.toLocaleString() },
    { title: "Could fit still", kind: "number", value: ({ gap }) => (gap ? `≤ ${gap}` : "0, proved") },
    { title: "Preempted", kind: "number", value: ({ preempted }) => preempted || "" },
    { title: "Moved", kind: "number", value: ({ migrated }) => migrated || "" },
    { title: "Networks", kind: "number", value: ({ solves }) => solves },
    { title: "Arcs", kind: "number", value: ({ arcs }) => arcs.toLocaleString() },
    { title: "Placed by", kind: "why", value: ({ placed_by }) => Object.entries(placed_by).map(([step, number]) => `${step}: ${number}`).join(", ") },
  ], rounds), element("div", { class: "pager" },
    element("button", { type: "button", onclick: () => change({ before: "" }) }, "Newest"),
    element("button", { type: "button", disabled: rounds.length < SHOWN, onclick: () => change({ before: rounds.at(-1).number }) }, "Older →")));
}

function one(found, number, change) {
  if (!found || String(found.number) !== String(number)) return card(`Round ${number}`, "", element("p", {}, "It is not remembered any more."));
  const rows = Object.entries(found).filter(([, value]) => typeof value !== "object");
  const stages = Object.entries(found.stages).sort(([, a], [, b]) => b - a);
  return card(`Round ${number}, ${clock(found.started_us / 1e6)}`, "",
    element("div", { class: "pager" },
      element("button", { type: "button", disabled: found.number <= 1, onclick: () => change({ round: found.number - 1 }) }, "← Before"),
      element("button", { type: "button", onclick: () => change({ round: found.number + 1 }) }, "Next →"),
      element("a", { href: `#network?round=${number}` }, "Its network")),
    element("h3", {}, "Figures"), table("Figures", [{ title: "Figure", value: ([name]) => name.replaceAll("_", " ") }, { title: "Value", kind: "number", value: ([, value]) => (typeof value === "number" ? value.toLocaleString(undefined, { maximumFractionDigits: 6 }) : String(value) || "–") }], rows),
    element("h3", {}, "Placed by"), table("Placed by", [{ title: "Step", value: ([step]) => step }, { title: "Pods", kind: "number", value: ([, pods]) => pods.toLocaleString() }], Object.entries(found.placed_by)),
    element("h3", {}, "Time by stage"), table("Stages", [{ title: "Stage", value: ([stage]) => stage }, { title: "Time", kind: "number", value: ([, seconds]) => span(seconds) }], stages));
}
