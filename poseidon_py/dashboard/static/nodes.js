// All nodes as a map by topology, and how many more pods of a shape fit; one node.

import { heat, scale } from "./charts.js";
import { get } from "./data.js";
import { bar, card, choice, element, facts, figures, hiddenNote, link, table } from "./dom.js";
import { podTable } from "./jobs.js";
import { inOrder } from "./overview.js";
import { amount, count, percent, unit } from "./text.js";

const SMALL_FROM = 600;

export function nodesPage({ label = "", resource = "cpu", shape = "", colour = "use" }, change) {
  return {
    title: "Nodes",
    async refresh(signal) {
      const found = await get("nodes", { label, resource, shape }, signal);
      return [form(found, shape, colour, change), found.shape ? fit(found) : "", map(found, colour), groups(found)];
    },
  };
}

function form(found, shape, colour, change) {
  const labels = Object.entries(found.labels).map(([name, values]) => [name, `${name} (${values})`]);
  const field = element("input", { type: "text", value: shape, size: 34, placeholder: "cpu=4,memory=8Gi,nvidia.com/gpu=1", name: "shape", "aria-describedby": "shape-help" });
  return card("Nodes", "", element("form", { class: "filter", onsubmit: (event) => {
    event.preventDefault();
    change({ shape: field.value.trim(), colour: field.value.trim() ? "fits" : "use" });
  } },
  choice("Grouped by the label", found.label, labels, (value) => change({ label: value })),
  choice("Resource", found.resource, inOrder(found.resources).map((name) => [name, unit(name)]), (value) => change({ resource: value, colour: "use" })),
  choice("Colour", found.shape ? colour : "use", [["use", "share that is used"], ["pods", "number of pods"], ...(found.shape ? [["fits", "how many more of the shape fit"]] : [])], (value) => change({ colour: value })),
  element("label", {}, "How many more pods of this shape fit?", field), element("button", {}, "Count")),
  element("p", { class: "note", id: "shape-help" }, "A shape is RESOURCE=QUANTITY,... of one pod. Affinity, volumes and quota are not part of it: `poseidon fits FILE` answers for a manifest."));
}

function fit({ shape, groups: rows, label }) {
  const names = Object.entries(shape.requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ");
  return card(`Pods of ${names}`, "", figures([
    ["More that fit now", shape.fits.toLocaleString(), `on ${count(shape.nodes, "node")}`],
    ["Without tolerations", shape.untainted.toLocaleString(), "on nodes that have no taint"],
    ["If all that is free were together", shape.pooled.toLocaleString(), "an upper bound"],
    ["Lost to fragmentation", shape.fragmentation === null ? "–" : percent(shape.fragmentation), "of that bound"],
  ]), rows.length > 1 ? element("p", { class: "note" }, `By ${label}: ${rows.filter(({ fits }) => fits).map(({ name, fits }) => `${name} ${fits.toLocaleString()}`).join(", ") || "none"}.`) : "");
}

function map({ columns, groups: rows, resource, shape }, wanted) {
  const colour = wanted === "fits" && !shape ? "use" : wanted;
  const most = { use: 1, pods: Math.max(...columns.pods, 1), fits: Math.max(...columns.fits, 1) }[colour];
  const share = (at) => (colour === "use" ? columns.used[at] / columns.allocatable[at] : columns[colour][at] / most);
  const cells = rows.map(() => []);
  const tip = (at) => `${columns.name[at]}: ${amount(resource, columns.used[at])} of ${amount(resource, columns.allocatable[at])} ${resource}, ${count(columns.pods[at], "pod")}`
    + (shape ? `, ${columns.fits[at]} more fit` : "") + (columns.taints[at] ? `; taints: ${columns.taints[at]}` : "");
  columns.name.forEach((name, at) => cells[columns.group[at]].push(element("button", {
    type: "button", tabindex: "-1", "data-node": name, title: tip(at), class: columns.taints[at] ? "tainted" : null, style: { background: heat(share(at), colour === "use") },
  })));
  const small = columns.name.length > SMALL_FROM ? "cells small" : "cells";
  const sections = rows.map((group, number) => element("section", {}, element("h3", {}, `${group.name} – ${count(group.nodes, "node")}`),
    element("div", { class: small, tabindex: "0", role: "group", "aria-label": `${group.name}: ${percent(group.used / group.allocatable)} of ${resource} used on ${count(group.nodes, "node")}. Arrows move between nodes, Enter opens one.` }, cells[number])));
  const top = { use: "100 % used", pods: count(most, "pod"), fits: `${most} more fit` }[colour];
  return card({ use: `Share of ${unit(resource)} that pods on each node have requested`, pods: "Pods on each node", fits: "How many more pods of the shape fit on each node" }[colour], "",
    element("div", { class: "legend" }, colour === "use" ? "0 %" : "0", element("i", { style: { background: scale(colour === "use") } }), top, " · frame: the node has taints · no colour: it has none of the resource"),
    element("div", { class: "map", onclick: opened, onkeydown: moved }, sections));
}

function opened(event) {
  const name = event.target.dataset?.node;
  if (name) location.hash = `#node?${new URLSearchParams({ name })}`;
}

// One stop of Tab for each group, arrows inside.
function moved(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!by) return;
  const group = event.target.closest(".cells");
  const nodes = [...group.children];
  const at = nodes.indexOf(event.target);
  nodes[at < 0 ? 0 : Math.min(Math.max(at + by, 0), nodes.length - 1)]?.focus();
  event.preventDefault();
}

function groups({ groups: rows, label, resource, shape }) {
  return card(`By ${label || "node"}`, "", table("Groups of nodes", [
    { title: "Group", kind: "name", value: ({ name }) => name },
    { title: "Nodes", kind: "number", value: ({ nodes }) => nodes.toLocaleString() },
    { title: "Pods", kind: "number", value: ({ pods }) => pods.toLocaleString() },
    { title: `Use of ${resource}`, value: ({ used, allocatable }) => (allocatable ? bar(used / allocatable, percent(used / allocatable)) : "") },
    { title: "", kind: "number", value: ({ used, allocatable }) => (allocatable ? percent(used / allocatable) : "") },
    { title: "Free", kind: "number", value: ({ used, allocatable }) => (allocatable ? amount(resource, Math.max(allocatable - used, 0)) : "") },
    ...(shape ? [{ title: "More of the shape", kind: "number", value: ({ fits }) => fits.toLocaleString() }] : []),
  ], rows));
}

export function nodePage({ name = "", offset = "" }) {
  return {
    title: name,
    async refresh(signal) {
      const [node, pods] = await Promise.all([get("node", { name }, signal), get("pods", { node: name, limit: 200, offset }, signal)]);
      const free = inOrder(node.resources.map(({ resource }) => resource)).map((each) => node.resources.find(({ resource }) => resource === each));
      return [element("p", {}, link("← Nodes", "nodes")), card(`Node ${node.node}`, "half", table("Resources", [
        { title: "Resource", value: ({ resource }) => unit(resource) },
        { title: "Use", value: ({ used, allocatable }) => bar(used / allocatable, percent(used / allocatable)) },
        { title: "Used", kind: "number", value: ({ resource, used }) => amount(resource, used) },
        { title: "Free", kind: "number", value: ({ resource, used, allocatable }) => amount(resource, Math.max(allocatable - used, 0)) },
        { title: "Capacity", kind: "number", value: ({ resource, allocatable }) => amount(resource, allocatable) },
      ], free)), card("Labels and taints", "half", facts([["Taints", node.taints || "none"], ...Object.entries(node.labels)])),
      card(count(pods.total, "pod"), "", podTable(pods.items, "No pod that you may see is on it."), hiddenNote({ hidden: Math.max(node.pods - pods.total, 0), reviewing: 0 }))];
    },
  };
}
