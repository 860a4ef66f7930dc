// What is used, what waits and why, what was evicted, how long rounds take.

import { draw, PALETTE, place, say } from "./charts.js";
import { get } from "./data.js";
import { bar, card, choice, element, figures, hiddenNote, link, objectLink, table } from "./dom.js";
import { actionTag } from "./details.js";
import { amount, clock, count, percent, span, unit } from "./text.js";

const FIRST = ["cpu", "memory"];
export const RIGHT = { overlaying: "y", side: "right", rangemode: "tozero", showgrid: false, tickmode: "auto", nticks: 5 };
const FEW = 5;
const MESSAGES = 4;
const LATER = ["ephemeral-storage", "pods"];

export function overviewPage({ label = "", span: time = "hour", all = "" }, change) {
  return {
    title: "Overview",
    async refresh(signal) {
      const [found, history, { rounds }] = await Promise.all([
        get("overview", { label }, signal), get("history", { span: time, prefix: "" }, signal).then(withoutQueues),
        get("rounds", { limit: 200 }, signal),
      ]);
      return [
        summary(found), hiddenNote({ hidden: 0, reviewing: found.reviewing }), waiting(found), use(found),
        overTime(history, time, change), roundsCard(found.rounds, rounds), pools(found, change), evictions(found.evictions, all, change),
      ];
    },
  };
}

function withoutQueues(history) {
  const values = Object.entries(history.values).filter(([name]) => !name.startsWith("queue/"));
  return { times: history.times, values: Object.fromEntries(values) };
}

export const inOrder = (names) => [...names].sort((one, other) => rank(one) - rank(other) || one.localeCompare(other));
const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : LATER.includes(name) ? 90 : 10);

function summary(found) {
  const { rounds, waits, pods, scheduler } = found;
  const evicted = Object.values(found.evictions.totals).flatMap(Object.values).reduce((sum, each) => sum + each, 0);
  return card("Now", "", figures([
    ["Pods that wait", link(pods.pending.toLocaleString(), "pods", { state: "waiting" }), waits.now ? `half of them for ${span(waits.now.p50)} or longer` : ""],
    ["Pods on nodes", link(pods.placed.toLocaleString(), "pods"), pods.leaving ? `${pods.leaving} of them leave` : count(found.nodes, "node")],
    ["Until a pod is bound", waits.until_bound ? span(waits.until_bound.p50) : "–", waits.until_bound ? `half of them; 95 % within ${span(waits.until_bound.p95)}` : "none was bound yet"],
    ["A round takes", rounds.seconds ? span(rounds.seconds.p50) : "–", rounds.seconds ? `half of them; 95 % within ${span(rounds.seconds.p95)}` : "there was none yet"],
    ["Left unplaced that could fit", rounds.last ? `≤ ${rounds.gap}` : "–", rounds.last ? (rounds.gap ? "in one round, at most" : "proved for the last 100 rounds") : ""],
    ["Pods evicted or moved", evicted.toLocaleString(), "since the start"],
  ]), element("p", { class: "note" }, `Policy ${scheduler.policy}; schedules pods of ${scheduler.names.join(", ")}; version ${scheduler.version}.`));
}

function waiting(found) {
  const rows = found.pending.flatMap((reasons) => [
    { reasons, first: true },
    ...reasons.reasons.filter(({ message }) => message).slice(0, MESSAGES).map((reason) => ({ reasons, reason })),
  ]);
  return card("Why pods wait", "half", table("Why pods wait", [
    { title: "Pods", kind: "number", value: ({ reasons, reason }) => (reason ? reason.pods : reasons.pods).toLocaleString() },
    { title: "Reason", kind: "why", value: ({ reasons, reason }) => (reason
      ? element("span", {}, element("span", { class: "quiet" }, reason.message, " – for instance "), objectLink("pod", reason.example))
      : element("span", {}, element("strong", {}, link(reasons.text, "pods", { state: "waiting", waits: reasons.waits })),
        further(reasons))) },
    { title: "Oldest", kind: "number", value: ({ reasons, first }) => (first ? span(reasons.oldest_seconds) : "") },
    { title: "What helps", value: ({ reasons, first }) => (first ? actionTag(reasons.action) : "") },
  ], rows, "No pod waits."));
}

function further({ reasons, more_reasons: more }) {
  const left = Math.max(reasons.length - MESSAGES, 0) + more;
  return left ? element("span", { class: "quiet" }, ` – the ${MESSAGES} most frequent messages, and ${left.toLocaleString()} others`) : "";
}

function use({ resources }) {
  const known = inOrder(resources.map(({ resource }) => resource)).map((name) => resources.find(({ resource }) => resource === name));
  return card("What the cluster's capacity is used for", "half", table("Use by resource", [
    { title: "Resource", value: ({ resource }) => unit(resource) },
    { title: "Requested by pods on nodes", value: (each) => bar(each.used / each.allocatable, `${percent(each.used / each.allocatable)} of ${each.resource}`, (each.used + each.requested) / each.allocatable) },
    { title: "", kind: "number", value: (each) => percent(each.used / each.allocatable) },
    { title: "Used", kind: "number", value: (each) => amount(each.resource, each.used) },
    { title: "Capacity", kind: "number", value: (each) => amount(each.resource, each.allocatable) },
    { title: "Pods wait for", kind: "number", value: (each) => (each.requested ? amount(each.resource, each.requested) : "") },
  ], known), element("p", { class: "note" }, "The line in a bar is where it would end if all that wait were placed."));
}

function overTime({ times, values }, time, change) {
  const chart = place("use over time");
  const at = times.map((each) => new Date(each * 1000));
  const used = inOrder(Object.keys(values).filter((name) => name.startsWith("use/")).map((name) => name.slice(4))).filter((name) => name !== "ephemeral-storage");
  const traces = used.map((name) => ({ x: at, y: values[`use/${name}`].map((each) => (each === null ? null : each * 100)), name, mode: "lines", hovertemplate: "%{y:.0f} %" }));
  if (values["pods/pending"]) traces.push({ x: at, y: values["pods/pending"], name: "waiting pods (right)", yaxis: "y2", mode: "lines", line: { dash: "dot", color: "#999" }, hovertemplate: "%{y:.0f} pods" });
  if (times.length > 1) draw(chart, "Use of each resource and number of waiting pods over time", traces, {
    hovermode: "x unified", yaxis: { ticksuffix: " %", rangemode: "tozero" }, margin: { l: 50, r: 50, t: 10, b: 35 },
    yaxis2: RIGHT,
  });
  else say(chart, time === "hour" ? "The first samples come within 20 seconds." : "The first samples of five minutes come within ten minutes.");
  return card("Over time", "half", choice("Span", time, [["hour", "the last hour"], ["week", "the last week"]], (value) => change({ span: value })), chart);
}

export function roundTraces(rounds) {
  const ordered = [...rounds].reverse();
  const x = ordered.map(({ number }) => number);
  const custom = ordered.map((each) => [clock(each.started_us / 1e6), each.pending, each.placed, each.waiting]);
  return [
    { x, y: ordered.map(({ seconds }) => seconds * 1000), name: "time (ms)", type: "bar", customdata: custom, marker: { color: PALETTE[0] },
      hovertemplate: "round %{x}, %{customdata[0]}<br>%{y:.1f} ms<br>%{customdata[2]} of %{customdata[1]} placed, %{customdata[3]} wait<extra></extra>" },
    { x, y: ordered.map(({ placed }) => placed), name: "pods placed (right)", yaxis: "y2", mode: "lines+markers", marker: { size: 4 }, line: { width: 1 }, hovertemplate: "%{y} placed<extra></extra>" },
  ];
}

export const ROUND_AXES = {
  yaxis: { ticksuffix: " ms", rangemode: "tozero" }, margin: { l: 60, r: 50, t: 10, b: 40 },
  yaxis2: RIGHT,
};

function roundsCard(summary, rounds) {
  const chart = place("rounds");
  if (rounds.length) draw(chart, "Time of the last rounds, and pods that they placed", roundTraces(rounds), ROUND_AXES);
  else say(chart, "There was no round with pending pods yet.");
  return card("Rounds", "half", chart, element("p", { class: "note" }, link(`All figures of ${count(summary.count, "round")}`, "rounds")));
}

function pools({ pools: { label, labels, pools: rows } }, change) {
  const names = inOrder([...new Set(rows.flatMap(({ resources }) => Object.keys(resources)))]).filter((name) => name !== "ephemeral-storage" && name !== "pods");
  const options = labels.map((each) => [each, each]);
  return card("By pool of nodes", "half",
    options.length ? choice("Pools are nodes with the same value of", label, options, (value) => change({ label: value })) : "",
    table("Use by pool", [
      { title: "Pool", kind: "name", value: ({ pool }) => link(pool, "nodes", { label }) },
      { title: "Nodes", kind: "number", value: ({ nodes }) => nodes.toLocaleString() },
      { title: "Pods", kind: "number", value: ({ pods }) => pods.toLocaleString() },
      ...names.map((name) => ({ title: name, value: ({ resources }) => {
        const [used, all] = resources[name] ?? [0, 0];
        return all ? element("div", {}, bar(used / all, `${percent(used / all)} of ${name}: ${amount(name, used)} of ${amount(name, all)}`), element("small", { class: "quiet" }, percent(used / all))) : "";
      } })),
    ], rows));
}

function evictions({ totals, recent }, all, change) {
  const sums = Object.entries(totals).map(([what, outcomes]) => `${what}: ${Object.entries(outcomes).map(([outcome, number]) => `${number.toLocaleString()} ${outcome}`).join(", ")}`);
  const shown = all ? recent : recent.slice(0, FEW);
  return card("Evictions and moves", "half", element("p", { class: "note" }, sums.join("; ") || "None since the start."), recent.length ? table("Evictions and moves", [
    { title: "When", kind: "time", value: ({ at }) => clock(at) },
    { title: "Pod", kind: "name", value: ({ pod }) => objectLink("pod", pod) },
    { title: "What", kind: "why", value: ({ how, node, target }) => element("span", {}, how, node ? " from " : "", node ? link(node, "node", { name: node }) : "", target ? " to " : "", target ? link(target, "node", { name: target }) : "") },
    { title: "Why", kind: "why", value: (each) => (each.needed_by ? element("span", {}, each.how === "moved" ? "so that this one fits: " : "for ", each.needed_by.includes("/") ? objectLink("pod", each.needed_by) : each.needed_by) : "it costs less on the other node") },
  ], shown) : "", recent.length > FEW ? element("button", { type: "button", onclick: () => change({ all: all ? "" : "1" }) }, all ? "Fewer" : `All of the last ${recent.length}`) : "");
}
