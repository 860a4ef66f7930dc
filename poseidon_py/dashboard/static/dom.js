// Elements. Texts are always set as text: a name is never markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function card(title, kind, ...children) {
  return element("section", { class: `card ${kind}`, "aria-label": title }, element("h2", {}, title), ...children);
}

export function link(text, page, parameters = {}) {
  return element("a", { href: address(page, parameters) }, text);
}

export function address(page, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  return `#${page}${query ? `?${query}` : ""}`;
}

export const objectLink = (page, name) => (name ? link(name, page, { name }) : "");

// columns: {title, value: (row) => text or element, kind: class}
export function table(caption, columns, rows, empty = "None.") {
  if (!rows.length) return element("p", { class: "quiet" }, empty);
  const nodes = rows.map((row) => columns.map(({ value }) => asNode(value(row))));
  const used = columns.map((_, at) => nodes.some((row) => row[at] !== ""));  // columns without any value are left out
  const head = columns.filter((_, at) => used[at]).map(({ title, kind }) => element("th", { scope: "col", class: kind }, title));
  const body = nodes.map((row) => element("tr", {}, row.map((node, at) => (used[at] ? element("td", { class: columns[at].kind }, node) : null))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}

function asNode(value) {
  return value === null || value === undefined ? "" : typeof value === "number" ? String(value) : value;
}

export function figures(entries) {
  return element("dl", { class: "figures" }, entries.map(([name, value, note]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, asNode(value), note ? element("small", {}, note) : ""))));
}

export function facts(entries) {
  return element("dl", { class: "facts" }, entries.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, asNode(value))]));
}

export function bar(share, label, at) {
  const kind = share > 1.0001 ? "full" : share > 0.9 ? "over" : "";
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  const line = at === undefined || at === null ? "" : element("b", { style: { left: `calc(${Math.min(at, 1)} * (100% - 2px))` } });
  return element("div", { class: "bar", role: "img", "aria-label": label, title: label }, element("i", { class: kind, style: { width } }), line);
}

export function choice(label, value, options, changed) {
  const select = element("select", { onchange: (event) => changed(event.target.value) },
    options.map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  return element("label", {}, label, select);
}

export function search(label, value, changed) {
  let timer = 0;
  const input = element("input", { type: "search", value, oninput: (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => changed(event.target.value), 250);
  } });
  return element("label", {}, label, input);
}

export function pager(list, limit, go) {
  const last = Math.min(list.offset + list.items.length, list.total);
  const shown = list.total ? `${(list.offset + 1).toLocaleString()} to ${last.toLocaleString()} of ${list.total.toLocaleString()}` : "none";
  return element("div", { class: "pager" },
    element("button", { type: "button", disabled: !list.offset, onclick: () => go(Math.max(list.offset - limit, 0)) }, "← Before"),
    element("span", {}, shown),
    element("button", { type: "button", disabled: last >= list.total, onclick: () => go(list.offset + limit) }, "Next →"));
}

export function hiddenNote(list) {
  const notes = [];
  if (list.hidden) notes.push(`${list.hidden.toLocaleString()} more are in namespaces whose pods you may not list.`);
  if (list.reviewing) notes.push(`Your permissions in ${list.reviewing.toLocaleString()} namespaces are still being checked.`);
  return notes.length ? element("p", { class: "note" }, notes.join(" ")) : "";
}
