// The flow network of a round: pods to classes to nodes to the sink, with costs and flow.

import { draw, PALETTE, place } from "./charts.js";
import { get, Problem } from "./data.js";
import { card, choice, element, link, table } from "./dom.js";
import { clock, count } from "./text.js";

const LIMIT = 200;
const NO_LIMIT = 2 ** 40;
const COLUMNS = { tasks: 0, class: 1, domain: 2, pair: 2, rack: 2, nodes: 3, unscheduled: 3, sink: 4 };
const COLOURS = { tasks: PALETTE[0], class: PALETTE[1], domain: PALETTE[3], pair: PALETTE[7], rack: PALETTE[6], nodes: PALETTE[2], unscheduled: PALETTE[4], sink: "#888888" };
const TITLES = { tasks: "pods", class: "class", domain: "domain", pair: "class and domain", rack: "rack", nodes: "nodes", unscheduled: "wait", sink: "sink" };

export function networkPage({ round = "", class: name = "", node = "", pod = "", arcs = "flow", solved = "" }, change) {
  return {
    title: "Network",
    async refresh(signal) {
      const ask = (number) => get("network", { round: number, class: name, node, pod, limit: LIMIT }, signal);
      let found;
      try {
        found = await ask(round);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return [card("Network", "", element("p", {}, `${error.message}.`), link("The networks of the last rounds", "network"))];
      }
      const busiest = found.rounds.reduce((best, each) => (each.placed > (best?.placed ?? 0) ? each : best), null);
      if (!round && !name && !node && !pod && busiest && busiest.number !== found.round) found = await ask(busiest.number);
      const sizes = found.networks.map(({ size, trial }) => (trial ? 0 : size.tasks));
      const at = solved === "" ? Math.max(sizes.indexOf(Math.max(...sizes)), 0) : Math.min(Number(solved), Math.max(found.networks.length - 1, 0));
      return [form(found, { narrow: name || node || pod, arcs, at }, change), found.networks.length ? picture(found.networks[at], arcs, change) : card("Network", "", element("p", {}, "No network was solved in this round.")),
        found.networks.length ? arcTable(found.networks[at]) : ""];
    },
  };
}

function form({ rounds, round, networks }, { narrow, arcs, at }, change) {
  const numbers = rounds.map(({ number }) => number).sort((a, b) => a - b);
  const place = numbers.indexOf(round);
  const step = (by) => () => change({ round: numbers[place + by], solved: "", class: "", node: "", pod: "" });
  const options = [...rounds].sort((a, b) => b.number - a.number).map((each) => [String(each.number), `${each.number}, ${clock(each.started)}: ${each.placed} placed`]);
  return card(`Round ${round}`, "", element("form", { class: "filter", onsubmit: (event) => event.preventDefault() },
    element("button", { type: "button", disabled: place <= 0, onclick: step(-1) }, "← Round before"),
    choice("Round", String(round), options, (value) => change({ round: value, solved: "", class: "", node: "", pod: "" })),
    element("button", { type: "button", disabled: place < 0 || place === numbers.length - 1, onclick: step(1) }, "Next round →"),
    networks.length > 1 ? choice("Network", String(at), networks.map((each, index) => [String(index), `${index + 1}${each.trial ? " (trial)" : ""}: ${count(each.size.tasks, "pod")}`]), (value) => change({ solved: value })) : "",
    choice("Arcs", arcs, [["flow", "with flow"], ["all", "all, those without flow thin"]], (value) => change({ arcs: value })),
    narrow ? element("button", { type: "button", onclick: () => change({ class: "", node: "", pod: "" }) }, `Show all, not only ${narrow}`) : ""));
}

function picture(network, arcs, change) {
  const chart = place("network", "tall");
  const places = new Map(network.vertices.map(({ id }, index) => [id, index]));
  const total = Math.max(...network.arcs.map(({ flow }) => flow), 1);
  const shown = network.arcs.filter(({ flow }) => flow > 0 || arcs === "all");
  const used = new Set(shown.flatMap(({ from, to }) => [from, to]));
  const hover = (vertex) => `${TITLES[vertex.kind] ?? vertex.kind}: ${vertex.label}<br>${count(vertex.count, "member")}${vertex.merged ? `, ${vertex.merged} vertices merged` : ""}`
    + `<br>potential ${vertex.potential === null ? "unknown" : vertex.potential.toLocaleString()}${vertex.supply ? `<br>supply ${vertex.supply.toLocaleString()}` : ""}`;
  const trace = {
    type: "sankey", arrangement: "snap", valueformat: ",",
    node: {
      label: network.vertices.map(({ id, label }) => (used.has(id) ? cut(label) : "")), color: network.vertices.map(({ kind }) => COLOURS[kind] ?? "#999"),
      customdata: network.vertices.map((each) => escaped(hover(each))), hovertemplate: "%{customdata}<extra></extra>", pad: 12, thickness: 16,
      x: network.vertices.map(({ kind }) => 0.001 + 0.998 * ((COLUMNS[kind] ?? 2) / 4)), y: network.vertices.map(() => 0.5),
    },
    link: {
      source: shown.map(({ from }) => places.get(from)), target: shown.map(({ to }) => places.get(to)), value: shown.map(({ flow }) => flow || total / 200),
      color: shown.map(({ flow }) => (flow ? "rgba(120,150,190,0.45)" : "rgba(150,150,150,0.15)")),
      customdata: shown.map((arc) => `flow ${arc.flow.toLocaleString()} of ${limit(arc.capacity)}<br>cost of a unit ${costs(arc)}${arc.merged > 1 ? `<br>${arc.merged} arcs merged` : ""}`),
      hovertemplate: "%{source.label} → %{target.label}<br>%{customdata}<extra></extra>",
    },
  };
  delete trace.node.y;
  const size = network.size;
  draw(chart, `Flow network: ${size.vertices} vertices, ${size.arcs} arcs`, [trace], { height: Math.min(Math.max(360, 20 * used.size), 1000), margin: { l: 10, r: 10, t: 10, b: 10 } })
    .then(() => {
      chart.removeAllListeners?.("plotly_click");
      chart.on?.("plotly_click", ({ points: [point] }) => chosen(network.vertices[point?.pointNumber], point, change));
    });
  return card("What flowed", "", element("p", { class: "note" },
    `${solvedAs(network)}; ${network.status}, cost ${network.cost.toLocaleString()}. Left to right: pods, classes, nodes, sink. A click on a class or a group of nodes shows that part alone.`),
  chart, vertexTable(network, change));
}

function solvedAs({ solved_by, size }) {
  const pods = count(size.tasks, "pod");
  return solved_by === "flow" ? `${pods} in a network of ${size.vertices.toLocaleString()} vertices and ${size.arcs.toLocaleString()} arcs`
    : `${pods} of one class, which need no network: the cheapest slots are theirs`;
}

function chosen(vertex, point, change) {
  if (!vertex || point.source !== undefined) return;  // an arc
  const to = narrowed(vertex);
  if (to) change(to);
}

function narrowed({ kind, label, names }) {
  if (kind === "class") return { class: label, node: "" };
  if (kind === "nodes") return { node: names[0] ?? label, class: "" };
  return null;
}

const limit = (capacity) => (capacity >= NO_LIMIT ? "no limit" : capacity.toLocaleString());
const costs = ({ cost, cost_max: highest }) => (highest > cost ? `${cost.toLocaleString()} to ${highest.toLocaleString()}` : cost.toLocaleString());

// Plotly reads a few tags in texts: names must not be any.
const escaped = (text) => text.replaceAll(/<(?!br>)/g, "&lt;");
const cut = (label) => escaped(label.length > 34 ? `${label.slice(0, 33)}…` : label);

// The same in words, and by keyboard.
function vertexTable({ vertices }, change) {
  return element("details", {}, element("summary", {}, count(vertices.length, "vertex", "vertices")), table("Vertices", [
    { title: "Kind", value: ({ kind }) => TITLES[kind] ?? kind },
    { title: "Name", kind: "name", value: (each) => {
      const to = narrowed(each);
      return to ? element("button", { type: "button", onclick: () => change(to) }, each.label) : each.label;
    } },
    { title: "Members", kind: "number", value: ({ count: number }) => number.toLocaleString() },
    { title: "Potential", kind: "number", value: ({ potential }) => (potential === null ? "" : potential.toLocaleString()) },
    { title: "For instance", kind: "name", value: ({ kind, names }) => element("span", {}, names.slice(0, 5).flatMap((each) => [kind === "nodes" ? link(each, "node", { name: each }) : kind === "tasks" && each.includes("/") ? link(each, "pod", { name: each }) : each, " "])) },
  ], vertices));
}

function arcTable({ vertices, arcs }) {
  const labels = new Map(vertices.map(({ id, label, kind }) => [id, `${label} (${TITLES[kind] ?? kind})`]));
  const ordered = [...arcs].sort((a, b) => b.flow - a.flow || a.cost - b.cost).slice(0, 200);
  return card("Arcs, those with the largest flow first", "", table("Arcs", [
    { title: "From", kind: "name", value: ({ from }) => labels.get(from) }, { title: "To", kind: "name", value: ({ to }) => labels.get(to) },
    { title: "Flow", kind: "number", value: ({ flow }) => flow.toLocaleString() }, { title: "Capacity", kind: "number", value: ({ capacity }) => limit(capacity) },
    { title: "Cost of a unit", kind: "number", value: costs },
  ], ordered));
}
