// Amounts and times as people read them.

const BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;

export function amount(resource, value) {
  if (value === null || value === undefined) return "";
  if (resource === "cpu") return round(value / 1000);
  if (BYTES.test(resource)) return bytes(value);
  return value.toLocaleString();
}

export function unit(resource) {
  return resource === "cpu" ? "cpu (cores)" : resource;
}

function bytes(value) {
  const steps = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
  const [suffix, size] = steps.find(([, each]) => Math.abs(value) >= each) ?? ["", 1];
  return `${round(value / size)} ${suffix}B`.replace(" B", " B");
}

function round(value) {
  return value.toLocaleString(undefined, { maximumFractionDigits: Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0 });
}

// A quantity of the API, as a number of whole units.
export function quantity(text) {
  if (text === null || text === undefined) return null;
  const found = /^(-?[0-9.]+)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/.exec(text);
  if (!found) return Number(text);
  const scale = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };
  return Number(found[1]) * (scale[found[2]] ?? 1);
}

export function percent(share) {
  return share === null || share === undefined || !Number.isFinite(share) ? "–" : `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// What is not older than a day without its date.
export function clock(time) {
  if (!time) return "";
  const at = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  return Date.now() - at < 20 * 3600e3 ? at.toLocaleTimeString() : at.toLocaleString();
}

// A figure of a job, by its name: times, and what was used for how long.
export function figure(name, value) {
  if (typeof value !== "number") return value;
  const [, resource] = /^resource_seconds (.*)$/.exec(name) ?? [];
  if (resource === "cpu") return `${round(value / 3600)} core hours`;
  if (resource && BYTES.test(resource)) return `${round(value / 3600 / 2 ** 30)} GiB hours`;
  if (resource) return `${round(value / 3600)} hours`;
  return /seconds$|^waits (?!count)/.test(name) ? span(value) : value.toLocaleString();
}

export const since = (time) => (time ? span(Math.max((Date.now() - new Date(time)) / 1000, 0)) : "");

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

export function requests(amounts) {
  return Object.entries(amounts).filter(([name]) => name !== "pods")
    .map(([name, value]) => `${name === "cpu" ? "cpu" : name} ${amount(name, value)}`).join(", ");
}
