// Lists of jobs, gangs and pods; the scheduler filters and cuts them.

import { draw, place } from "./charts.js";
import { get } from "./data.js";
import { card, choice, element, hiddenNote, link, objectLink, pager, search, table } from "./dom.js";
import { clock, requests, since, span } from "./text.js";

const LIMIT = 50;

function filters(fields, states, given, change) {
  const set = (name) => (value) => change({ [name]: value, offset: "" }, true);
  const options = Object.entries(states).map(([state, number]) => [state, number === null ? state : `${state} (${number.toLocaleString()})`]);
  return element("form", { class: "filter", role: "search", onsubmit: (event) => event.preventDefault() },
    search("Name has", given.text ?? "", set("text")),
    choice("State", given.state ?? "", [["", "any"], ...options], set("state")),
    ...fields.map(([name, title]) => search(title, given[name] ?? "", set(name))));
}

const selection = (given) => ({ ...given, limit: LIMIT, offset: given.offset ?? "" });

export function jobsPage(given, change) {
  return {
    title: "Jobs",
    async refresh(signal) {
      const found = await get("jobs", selection(given), signal);
      return [
        card("Jobs", "", filters([["namespace", "Namespace"], ["queue", "Queue"], ["user", "User"]], found.states, given, change),
          jobTable(found.items), pager(found, LIMIT, (offset) => change({ offset })), hiddenNote(found)),
        gantt(found),
      ];
    },
  };
}

function jobTable(rows) {
  return table("Jobs", [
    { title: "Job", kind: "name", value: ({ name }) => objectLink("job", name) },
    { title: "Kind", value: ({ kind }) => kind },
    { title: "State", value: ({ state }) => stateTag(state) },
    { title: "Pods", value: ({ pods }) => Object.entries(pods).map(([state, number]) => `${number} ${state.toLowerCase()}`).join(", ") },
    { title: "Queue", value: ({ queue }) => (queue ? link(queue, "queue", { name: queue }) : "") },
    { title: "User", value: ({ user }) => user },
    { title: "Age", kind: "number", value: ({ age_seconds }) => span(age_seconds) },
    { title: "Started", kind: "time", value: ({ started, planned_start }) => (started ? clock(started) : planned_start ? element("strong", { title: "planned" }, `planned ${clock(planned_start)}`) : "") },
    { title: "Why it waits", kind: "why", value: ({ waits, why, reason }) => (waits ? element("span", {}, element("strong", {}, waits), why ? element("span", { class: "quiet" }, ` – ${why}`) : "") : element("span", { class: "quiet" }, reason)) },
  ], rows, "No job agrees with this.");
}

export function stateTag(state) {
  const kind = { Running: "good", Succeeded: "good", Failed: "bad", WillEvicted: "warn", Interrupted: "warn", Pending: "warn" }[state] ?? "";
  return element("span", { class: `tag ${kind}` }, state);
}

// Waiting, running and planned times of the jobs of the list.
function gantt({ items, now }) {
  const chart = place("jobs", "tall");
  const rows = items.filter(({ created }) => created).slice(0, 40).reverse();
  if (!rows.length) return "";
  const names = rows.map(({ name, uid }, index) => `${name}${rows.findIndex((each) => each.name === name) === index ? "" : ` ${uid.slice(0, 4)}`}`);
  const time = (text) => new Date(text).getTime();
  const bars = (name, color, part) => {
    const found = rows.map((row, index) => [names[index], ...part(row)]).filter(([, from, until]) => from && until && until > from);
    return { type: "bar", orientation: "h", name, marker: { color }, y: found.map(([label]) => label), base: found.map(([, from]) => from), x: found.map(([, from, until]) => until - from),
      customdata: found.map(([, from, until]) => [clock(from / 1000), span((until - from) / 1000)]), hovertemplate: `%{y}: ${name} from %{customdata[0]}, %{customdata[1]}<extra></extra>` };
  };
  const end = ({ ended }) => time(ended ?? now);
  const planned = rows.map((row, index) => [names[index], row.planned_start]).filter(([, at]) => at);
  const traces = [
    bars("waiting", "#b9c2cc", (row) => [time(row.created), row.started ? time(row.started) : end(row)]),
    bars("since its start", "#4a90d9", (row) => (row.started ? [time(row.started), end(row)] : [])),
    { mode: "markers", name: "planned start", marker: { symbol: "diamond", size: 11, color: "#e08b3e" }, y: planned.map(([name]) => name), x: planned.map(([, at]) => time(at)), hovertemplate: "%{y}: planned start<extra></extra>" },
  ].filter(({ y }) => y.length);
  draw(chart, "When the jobs of this list waited and ran, and planned starts", traces, {
    barmode: "overlay", xaxis: { type: "date" }, yaxis: { automargin: true, categoryorder: "array", categoryarray: names, tickfont: { size: 10 } },
    height: Math.max(160, 22 * rows.length + 90), margin: { l: 10, r: 15, t: 10, b: 35 },
  });
  return card("When they waited and ran", "", chart, element("p", { class: "note" },
    "A start is planned where capacity is reserved and it is known when that suffices: what runs there has declared how long it takes."));
}

export function gangsPage(given, change) {
  return {
    title: "Gangs",
    async refresh(signal) {
      const found = await get("gangs", selection(given), signal);
      return [card("Gangs: pods that start together or not at all", "", filters([["namespace", "Namespace"], ["queue", "Queue"]], found.states, given, change),
        table("Gangs", [
          { title: "Gang", kind: "name", value: ({ name }) => objectLink("gang", name) },
          { title: "State", value: ({ state }) => stateTag(state) },
          { title: "Needs", kind: "number", value: ({ minimum }) => minimum },
          { title: "Present", kind: "number", value: ({ present }) => present },
          { title: "Placed", kind: "number", value: ({ placed }) => placed },
          { title: "Queue", value: ({ queue }) => (queue ? link(queue, "queue", { name: queue }) : "") },
          { title: "Priority", kind: "number", value: ({ priority }) => priority },
          { title: "Age", kind: "number", value: ({ age_seconds }) => span(age_seconds) },
          { title: "Planned start", kind: "time", value: ({ starts, reserves }) => (starts ? clock(starts) : reserves ? "reserved; not known" : "") },
          { title: "Why it waits", kind: "why", value: ({ why, problem }) => element("span", {}, why, problem ? element("span", { class: "problem" }, ` ${problem}`) : "") },
        ], found.items, "No gang agrees with this."), pager(found, LIMIT, (offset) => change({ offset })), hiddenNote(found))];
    },
  };
}

export function podsPage(given, change) {
  return {
    title: "Pods",
    async refresh(signal) {
      const found = await get("pods", selection(given), signal);
      const states = Object.fromEntries(["waiting", "being bound", "on a node", "being preempted", "being moved", "being deleted"].map((state) => [state, null]));
      const only = given.waits ? element("p", { class: "note" }, "Only pods that wait for one class of reasons. ", link("Show all", "pods", { state: "waiting" })) : "";
      return [card("Pods", "", filters([["namespace", "Namespace"], ["node", "Node"]], states, given, change), only, podTable(found.items),
        pager(found, LIMIT, (offset) => change({ offset })), hiddenNote(found))];
    },
  };
}

export function podTable(rows, empty = "No pod agrees with this.") {
  return table("Pods", [
    { title: "Pod", kind: "name", value: ({ pod }) => objectLink("pod", pod) },
    { title: "State", value: ({ state }) => state },
    { title: "Node", kind: "name", value: ({ node, nominated }) => (node || nominated ? link(node || `${nominated} (once others have left)`, "node", { name: node || nominated }) : "") },
    { title: "Requests", value: (each) => requests(each.requests) },
    { title: "Priority", kind: "number", value: ({ priority }) => priority },
    { title: "Age", kind: "number", value: ({ created }) => since(created) },
    { title: "Why it waits", kind: "why", value: ({ waits, why }) => (waits ? element("span", {}, element("strong", {}, waits), why ? element("span", { class: "quiet" }, ` – ${why}`) : "") : "") },
  ], rows, empty);
}
