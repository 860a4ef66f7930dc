// The tree of queues: what each may use, uses and borrows; one queue over time.

import { draw, place, say } from "./charts.js";
import { get } from "./data.js";
import { bar, card, choice, element, facts, link, objectLink, table } from "./dom.js";
import { inOrder, RIGHT } from "./overview.js";
import { count, percent, quantity } from "./text.js";

export function queuesPage(_, change) {
  return {
    title: "Queues",
    async refresh(signal) {
      const found = await get("queues", {}, signal);
      const problems = Object.entries(found.problems);
      return [
        card("Queues", "", element("p", { class: "note" }, `${found.why}.`),
          found.queues.length ? tree(found.queues) : element("p", {}, `There is no queue. To make one: ${found.how}.`)),
        problems.length ? card("Problems of objects that declare queues", "", element("ul", { class: "story" }, problems.map(([object, lines]) => element("li", {}, element("strong", {}, object), `: ${lines.join("; ")}`)))) : "",
        found.hidden_problems ? element("p", { class: "note" }, `${found.hidden_problems} objects with problems are in namespaces whose pods you may not list.`) : "",
      ];
    },
  };
}

function tree(queues) {
  const rows = queues.flatMap((queue) => {
    const amounts = inOrder([...new Set(queue.resources.map(({ resource }) => resource))]).flatMap((name) => queue.resources.filter(({ resource }) => resource === name));
    return amounts.length ? amounts.map((each, index) => ({ queue, each, first: !index })) : [{ queue, each: null, first: true }];
  });
  const only = (value) => ({ queue, first }) => (first ? value(queue) : "");
  return table("Tree of queues", [
    { title: "Queue", kind: "name", value: only((queue) => element("span", { style: { paddingLeft: `${queue.depth * 1.3}rem` } }, queue.depth ? "└ " : "", link(queue.name, "queue", { name: queue.name }), element("small", { class: "quiet" }, ` ${queue.type}`))) },
    { title: "State", value: only((queue) => element("span", { class: `tag ${queue.state === "open" ? "good" : "warn"}`, title: queue.why }, queue.state)) },
    { title: "Running", kind: "number", value: only(({ running }) => running.toLocaleString()) },
    { title: "Waiting", kind: "number", value: only(({ pending }) => pending.toLocaleString()) },
    { title: "Share borrowed", kind: "number", value: only(({ share }) => (share ? percent(share) : "")) },
    { title: "Resource", value: ({ each }) => (each ? `${each.resource}${each.flavor ? ` (${each.flavor})` : ""}` : "") },
    ...amountColumns(({ each }) => each),
  ], rows);
}

function amountColumns(of) {
  const part = (name) => (row) => of(row)?.[name] ?? "";
  return [
    { title: "Use", value: (row) => useBar(of(row)) },
    { title: "Used", kind: "number", value: part("used") },
    { title: "Guarantee", kind: "number", value: part("guarantee") },
    { title: "Fair share", kind: "number", value: part("fair_share") },
    { title: "Limit", kind: "number", value: (row) => (of(row) ? of(row).limit ?? "none" : "") },
    { title: "Borrowed", kind: "number", value: (row) => (quantity(of(row)?.borrowed) ? of(row).borrowed : "") },
    { title: "Pods wait for", kind: "number", value: (row) => (quantity(of(row)?.requested) ? of(row).requested : "") },
  ];
}

// Of the limit, with a line at the guarantee; without a limit, of whatever is largest.
function useBar(each) {
  if (!each) return "";
  const [used, guarantee, limit, fair] = [each.used, each.guarantee, each.limit, each.fair_share].map(quantity);
  const all = limit ?? Math.max(used, guarantee ?? 0, fair ?? 0);
  if (!all) return "";
  return bar(used / all, `${each.used} used, ${each.guarantee ?? "nothing"} guaranteed, limit ${each.limit ?? "none"}`, guarantee ? guarantee / all : null);
}

export function queuePage({ name = "", span = "hour" }, change) {
  return {
    title: name,
    async refresh(signal) {
      const prefix = `queue/${name}/`;
      const [{ queues }, history] = await Promise.all([get("queue", { name }, signal), get("history", { span, prefix }, signal)]);
      const [queue, ...below] = queues;
      return [element("p", {}, link("← Queues", "queues")), about(queue), waiting(queue), amounts(queue), overTime(history, prefix, span, change), local(queue), users(queue), below.length ? card("Queues below it", "", tree(below)) : ""];
    },
  };
}

function about(queue) {
  return card(`${queue.type} ${queue.name}`, "half", facts([
    ["State", element("span", {}, element("span", { class: `tag ${queue.state === "open" ? "good" : "warn"}` }, queue.state), " ", queue.why)],
    ["Above it", queue.parent ? link(queue.parent, "queue", { name: queue.parent }) : ""],
    ["Pods", `${queue.running} running, ${queue.pending} waiting${queue.nominated ? `, ${queue.nominated} of them for others to leave` : ""}`],
    ["Share borrowed", percent(queue.share)],
    ["Problems", queue.problems.length ? element("span", { class: "problem" }, queue.problems.join("; ")) : ""],
  ]), link("Its jobs", "jobs", { queue: queue.name }));
}

function waiting(queue) {
  const hidden = (queue.hidden_waiting ?? 0) + (queue.more ?? 0);
  return card("Its oldest pods that wait", "half", table("Pods that wait", [
    { title: "Pod", kind: "name", value: ({ pod }) => objectLink("pod", pod) }, { title: "Why", kind: "why", value: ({ why }) => why },
  ], queue.waiting ?? []), hidden ? element("p", { class: "note" }, `${hidden.toLocaleString()} further ones are not shown.`) : "",
  queue.suspended?.length ? element("h3", {}, "Workloads that wait to be resumed") : "", queue.suspended?.length ? table("Suspended", [
    { title: "Workload", kind: "name", value: ({ kind, name }) => `${kind} ${name}` }, { title: "Why", kind: "why", value: ({ why }) => why },
  ], queue.suspended) : "");
}

const amounts = (queue) => card("What it may use", "", table("Amounts", [
  { title: "Resource", value: ({ resource }) => resource }, { title: "Flavor", value: ({ flavor }) => flavor }, ...amountColumns((each) => each),
], queue.resources));

function overTime({ times, values }, prefix, span, change) {
  const used = place("queue use");
  const pods = place("queue pods");
  const at = times.map((each) => new Date(each * 1000));
  const shown = (part) => Object.keys(values).filter((name) => name.startsWith(`${prefix}${part}/`));
  const line = (name, y, extra = {}) => ({ x: at, y, name, mode: "lines", ...extra });
  const names = inOrder(shown("used").map((name) => name.slice(`${prefix}used/`.length)));
  if (times.length > 1 && names.length) {
    const bytes = (name) => name === "memory" || name === "ephemeral-storage";
    draw(used, "Use over time", names.map((name) => line(bytes(name) ? `${name} (GiB, right)` : name, values[`${prefix}used/${name}`].map((each) => (each === null ? null : bytes(name) ? each / 2 ** 30 : each)), bytes(name) ? { yaxis: "y2", line: { dash: "dot" } } : {})),
      { hovermode: "x unified", yaxis: { rangemode: "tozero" }, yaxis2: RIGHT, margin: { l: 50, r: 55, t: 10, b: 35 } });
    draw(pods, "Pods over time", shown("pods").map((name) => line(name.slice(`${prefix}pods/`.length), values[name])), { hovermode: "x unified", yaxis: { rangemode: "tozero" } });
  } else {
    say(used, "There are no samples of this time yet.");
    say(pods, "");
  }
  return card("Over time", "", choice("Span", span, [["hour", "the last hour"], ["week", "the last week"]], (value) => change({ span: value })), element("h3", {}, "Used"), used, element("h3", {}, "Pods"), pods);
}

function local(queue) {
  if (!queue.local_queues.length && !queue.hidden_local_queues) return "";
  return card("LocalQueues", "half", table("LocalQueues", [
    { title: "Name", kind: "name", value: ({ name }) => name }, { title: "Running", kind: "number", value: ({ running }) => running },
    { title: "Waiting", kind: "number", value: ({ pending }) => pending }, { title: "Past use", kind: "number", value: ({ past_use }) => past_use ?? "" },
  ], queue.local_queues), queue.hidden_local_queues ? element("p", { class: "note" }, `${count(queue.hidden_local_queues, "further one")} in namespaces whose pods you may not list.`) : "");
}

function users(queue) {
  const rows = Object.entries(queue.users ?? {}).filter(([user]) => user);
  if (!rows.length) return "";
  const names = [...new Set(rows.flatMap(([, each]) => Object.entries(each).filter(([, value]) => typeof value === "number" && value).map(([name]) => name)))].slice(0, 6);
  return card(`Users since ${new Date(queue.since).toLocaleString()}`, "half", table("Users", [
    { title: "User", value: ([user]) => user }, ...names.map((name) => ({ title: name.replaceAll("_", " "), kind: "number", value: ([, each]) => (each[name] ?? 0).toLocaleString(undefined, { maximumFractionDigits: 1 }) })),
  ], rows));
}
