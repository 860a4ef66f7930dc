// One job, one gang, one pod: its story, why it waits, and what would have to change.

import { draw, place } from "./charts.js";
import { get } from "./data.js";
import { card, element, facts, link, objectLink, table } from "./dom.js";
import { stateTag } from "./jobs.js";
import { amount, clock, count, figure, requests, since, span } from "./text.js";

const cut = (list, more, what) => (more ? element("p", { class: "note" }, `${more.toLocaleString()} further ${what} are not shown.`) : "");
const back = (page, text) => element("p", {}, link(`← ${text}`, page));

export function jobPage({ name = "" }) {
  return {
    title: name,
    async refresh(signal) {
      const { jobs, now, suspended } = await get("job", { name }, signal);
      return [back("jobs", "Jobs"), ...suspended.map(suspendedCard), ...jobs.flatMap((job) => [jobCard(job), waitingCard(job), timeline(job, now), podsCard(job), figuresCard(job)])];
    },
  };
}

const suspendedCard = ({ name, kind, queue, why }) => card(`${kind} ${name} is suspended`, "", element("p", {}, `Queue ${queue}: ${why}`));

function jobCard(job) {
  return card(`${job.kind} ${job.name}`, "half", facts([
    ["State", element("span", {}, stateTag(job.state), " ", job.reason)],
    ["In that state", since(job.since)],
    ["Pods", Object.entries(job.pods).map(([state, number]) => `${number} ${state}`).join(", ")],
    ["Gang", job.gang ? objectLink("gang", job.gang) : ""],
    ["Queue", job.queue ? link(job.queue, "queue", { name: job.queue }) : ""],
    ["User", job.user],
    ["Created", clock(job.created)],
    ["Started", clock(job.started)],
    ["Planned start", clock(job.planned_start)],
    ["Ended", clock(job.ended)],
    ["Will be evicted", job.eviction_time ? `${clock(job.eviction_time)} for ${job.preempted_by}` : ""],
    ["Retries", job.retries || ""], ["Preempted", job.preempted || ""], ["Moved", job.migrated || ""],
  ]));
}

function waitingCard(job) {
  if (!job.waiting?.length) return card("Why it waits", "half", element("p", { class: "quiet" }, "None of its pods waits."));
  const groups = Map.groupBy ? Map.groupBy(job.waiting, ({ why }) => why) : grouped(job.waiting);
  return card("Why it waits", "half", ...[...groups].map(([why, pods]) => element("p", {}, element("strong", {}, why || "it is about to be tried"), element("span", { class: "quiet" }, ` – ${count(pods.length, "pod")}, for instance `), objectLink("pod", pods[0].pod))),
    cut(job.waiting, job.more, "waiting pods"));
}

function grouped(waiting) {
  const found = new Map();
  for (const each of waiting) found.set(each.why, [...(found.get(each.why) ?? []), each]);
  return found;
}

function timeline(job, now) {
  const chart = place(`pods of ${job.uid}`, "tall");
  const rows = job.replicas.filter(({ created }) => created).slice(0, 60).reverse();
  if (!rows.length) return "";
  const time = (text) => new Date(text).getTime();
  const bars = (name, color, part) => {
    const found = rows.map((row) => [row.name, ...part(row)]).filter(([, from, until]) => from && until && until > from);
    return { type: "bar", orientation: "h", name, marker: { color }, y: found.map(([pod]) => pod), base: found.map(([, from]) => from), x: found.map(([, from, until]) => until - from),
      customdata: found.map(([, from, until]) => [clock(from / 1000), span((until - from) / 1000)]), hovertemplate: `%{y}: ${name} from %{customdata[0]}, %{customdata[1]}<extra></extra>` };
  };
  const end = ({ ended }) => time(ended ?? now);
  draw(chart, "When each pod waited, was starting and ran", [
    bars("waiting", "#b9c2cc", (row) => [time(row.created), row.bound ? time(row.bound) : end(row)]),
    bars("bound, not started", "#e0b13e", (row) => (row.bound ? [time(row.bound), row.started ? time(row.started) : end(row)] : [])),
    bars("running", "#4a90d9", (row) => (row.started ? [time(row.started), end(row)] : [])),
  ].filter(({ y }) => y.length), { barmode: "overlay", xaxis: { type: "date" }, yaxis: { automargin: true, categoryorder: "array", categoryarray: rows.map(({ name }) => name), tickfont: { size: 10 } }, height: Math.max(150, 20 * rows.length + 90), margin: { l: 10, r: 15, t: 10, b: 35 } });
  return card("Its pods over time", "", chart);
}

function podsCard(job) {
  const namespace = job.namespace;
  return card("Its pods", "", table("Pods", [
    { title: "Pod", kind: "name", value: ({ name }) => objectLink("pod", `${namespace}/${name}`) },
    { title: "Role", value: ({ task }) => task },
    { title: "State", value: ({ state }) => stateTag(state) },
    { title: "Node", kind: "name", value: ({ node }) => (node ? link(node, "node", { name: node }) : "") },
    { title: "Created", kind: "time", value: ({ created }) => clock(created) },
    { title: "Bound", kind: "time", value: ({ bound }) => clock(bound) },
    { title: "Started", kind: "time", value: ({ started }) => clock(started) },
    { title: "Ended", kind: "time", value: ({ ended }) => clock(ended) },
    { title: "Why", kind: "why", value: ({ reason, exit_code }) => (reason ? `${reason}${exit_code ? ` (exit code ${exit_code})` : ""}` : "") },
  ], job.replicas.slice(0, 200)), cut(job.replicas, job.more_replicas + Math.max(job.replicas.length - 200, 0), "pods"));
}

function figuresCard({ statistics }) {
  const rows = Object.entries(statistics ?? {}).flatMap(([name, value]) => (value && typeof value === "object"
    ? Object.entries(value).map(([part, each]) => [`${name} ${part}`, each]) : [[name, value]])).filter(([, value]) => value !== null && typeof value !== "object" && value !== 0);
  return rows.length ? card("Its figures", "half", table("Figures", [{ title: "Figure", value: ([name]) => name.replaceAll("_", " ") }, { title: "Value", kind: "number", value: ([name, value]) => figure(name, value) }], rows)) : "";
}

export function gangPage({ name = "" }) {
  return {
    title: name,
    async refresh(signal) {
      const { gangs } = await get("gang", { name }, signal);
      return [back("gangs", "Gangs"), ...gangs.flatMap((gang) => [
        card(`Gang ${gang.name}`, "", facts([
          ["State", element("span", {}, stateTag(gang.state), " ", gang.why)],
          ["Problem", gang.problem ? element("span", { class: "problem" }, gang.problem) : ""],
          ["Declared by", gang.source],
          ["Needs", `${count(gang.minimum, "member")}${gang.maximum ? `, at most ${gang.maximum}` : ""}`],
          ["Members", `${gang.present} present, ${gang.placed} placed, ${gang.running} running, ${gang.waiting} waiting, ${gang.succeeded} succeeded, ${gang.failed} failed`],
          ["Roles", Object.entries(gang.roles).map(([role, least]) => `${role}: ${least}`).join(", ")],
          ["Queue", gang.queue ? link(gang.queue, "queue", { name: gang.queue }) : ""],
          ["Priority", gang.priority],
          ["Age", span(gang.age_seconds)],
          ["Capacity", gang.reserves ? "is reserved for it" : ""],
          ["Planned start", clock(gang.starts)],
        ])),
        card("Members", "", table("Members", [
          { title: "Pod", kind: "name", value: ({ pod }) => objectLink("pod", pod) },
          { title: "Role", value: ({ role }) => role },
          { title: "State", value: ({ state }) => state },
          { title: "Node", kind: "name", value: ({ node, nominated }) => (node || nominated ? link(node || nominated, "node", { name: node || nominated }) : "") },
        ], gang.members.slice(0, 500))),
      ])];
    },
  };
}

export function podPage({ name = "" }) {
  return {
    title: name,
    async refresh(signal) {
      const pod = await get("pod", { name }, signal);
      return [back("pods", "Pods"), podCard(pod), whyCard(pod), storyCard(pod), nearestCard(pod)];
    },
  };
}

function podCard(pod) {
  return card(`Pod ${pod.pod}`, "half", facts([
    ["State", pod.state],
    ["Node", pod.node ? link(pod.node, "node", { name: pod.node }) : ""],
    ["Placed by", pod.placed_by],
    ["Waits for others to leave", pod.nominated ? link(pod.nominated, "node", { name: pod.nominated }) : ""],
    ["Job", pod.job ? objectLink("job", pod.job) : ""],
    ["Gang", pod.gang ? objectLink("gang", pod.gang.name) : ""],
    ["Queue", pod.queue ? link(pod.queue, "queue", { name: pod.queue }) : ""],
    ["Priority", pod.priority],
    ["Requests", requests(pod.requests)],
  ]), element("p", { class: "note" }, link("Its way through the network of the last round", "network", { pod: pod.pod })));
}

function whyCard(pod) {
  const why = pod.problem || pod.message;
  if (pod.node) return card("Why it waits", "half", element("p", { class: "quiet" }, why || "It has a node."));
  const gang = pod.gang && !pod.node ? facts([
    ["Its gang needs", `${pod.gang.minimum} members; ${pod.gang.present} are present, ${pod.gang.placed} placed`],
    ["Members that fit", pod.gang.fits === null ? "" : String(pod.gang.fits)],
    ["Has to become free", Object.entries(pod.gang.lacks).map(([resource, value]) => `${resource} ${amount(resource, value)}`).join(", ")],
  ]) : "";
  return card("Why it waits", "half",
    pod.verdict ? element("p", {}, element("strong", {}, pod.verdict), " ", actionTag(pod.action)) : "",
    element("p", {}, why || "The next round will try to place it."), gang, facts([
      ["Nodes that could take it now", pod.fits_now ?? ""],
      ["Capacity", pod.reserves || pod.gang?.reserves ? "is reserved for it" : ""],
      ["Expected to fit", clock(pod.starts ?? pod.gang?.starts)],
    ]), blocking(pod), remedies(pod));
}

function blocking({ blocking: found, blocking_is_smallest: smallest }) {
  if (!found?.length) return "";
  return element("div", {}, element("h3", {}, smallest ? "The fewest constraints by which every node fails" : "Constraints by which every node fails; none of them can be left out"),
    element("ul", { class: "story" }, found.map(({ constraint, nodes }) => element("li", {}, `${constraint} (${count(nodes, "node")})`))));
}

function remedies({ remedies: found }) {
  if (!found?.length) return "";
  return element("div", {}, element("h3", {}, "What alone is in the way on some nodes"), element("ul", { class: "story" },
    found.map(({ without, nodes, node }) => element("li", {}, `${without.join(" and ")}: then it fits on ${count(nodes, "node")}, such as `, link(node, "node", { name: node })))));
}

const ACTIONS = { wait: "wait", "change-request": "change the request", "ask-admin": "ask the administrator" };

export function actionTag(action) {
  return action ? element("span", { class: `tag ${action === "wait" ? "" : "warn"}` }, ACTIONS[action] ?? action) : "";
}

function storyCard(pod) {
  const times = ["created", "bound", "started", "ended"].filter((each) => pod.times[each]).map((each) => element("li", {}, element("strong", {}, each), ` ${clock(pod.times[each])}`));
  return card("Its story", "half", element("ul", { class: "story" }, times),
    pod.story.length ? element("h3", {}, "What the flow service remembers, oldest first") : "",
    element("ol", { class: "story" }, pod.story.map((line) => element("li", {}, line))));
}

function nearestCard(pod) {
  if (!pod.nearest.length) return "";
  return card("Nodes that lack least", "half", table("Nodes that lack least", [
    { title: "Node", kind: "name", value: ({ node }) => link(node, "node", { name: node }) },
    { title: "Lacks", value: ({ lacks }) => Object.entries(lacks).map(([resource, value]) => `${resource} ${amount(resource, value)}`).join(", ") || "nothing" },
  ], pod.nearest));
}
