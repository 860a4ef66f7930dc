// Drawings by plotly.js, which is only loaded once texts and tables are shown: it is large.

import { element } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();
const places = new Map();
let loading = null;

function plotlyLoaded() {
  loading ??= new Promise((resolve) => {
    const script = element("script", { src: "plotly.min.js", onload: () => resolve(globalThis.Plotly), onerror: () => resolve(null) });
    setTimeout(() => document.head.append(script), 0);
  });
  return loading;
}

// The element of a chart, which stays the same while its page is drawn anew.
export function place(name, kind = "") {
  if (!places.has(name)) places.set(name, element("div", { class: `chart ${kind}` }));
  return places.get(name);
}

export const PALETTE = ["#4a90d9", "#e08b3e", "#4fae7b", "#b06fc4", "#d9605b", "#8a9a3c", "#3aa7b5", "#c77f9f", "#7c86d1", "#9c7a5b"];

function style() {
  const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return { text: of("--text"), quiet: of("--quiet"), line: of("--line"), card: of("--card") };
}

// `chart`: an element in the page; `label`: what it shows, for those who cannot see it.
export async function draw(chart, label, traces, layout = {}) {
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", label);
  const wanted = { label, traces, layout };
  drawn.set(chart, wanted);
  const plotly = await plotlyLoaded();
  await new Promise((resolve) => setTimeout(resolve, 0));  // until it is in the page
  if (!plotly) {
    say(chart, "plotly.min.js could not be loaded, so nothing is drawn here.");
    return;
  }
  if (!chart.isConnected || drawn.get(chart) !== wanted) return;
  const { text, quiet, line } = style();
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: quiet }, automargin: true };
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: text, size: 12 }, colorway: PALETTE,
    margin: { l: 50, r: 15, t: 10, b: 35 }, hovermode: "closest", showlegend: traces.length > 1,
    legend: { orientation: "h", y: -0.18, font: { color: quiet } }, height: chart.classList.contains("tall") ? 380 : 240, uirevision: "kept",
  };
  const merged = { ...base, ...layout, xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } };
  if (layout.yaxis2) merged.yaxis2 = { ...axis, ...layout.yaxis2 };
  else delete merged.yaxis2;
  await plotly.react(chart, traces, merged, { displayModeBar: false, responsive: true });
}

// Instead of a drawing.
export function say(chart, text) {
  drawn.delete(chart);
  globalThis.Plotly?.purge(chart);
  chart.removeAttribute("role");
  chart.textContent = text;
}

export function forgetCharts() {
  for (const [name, chart] of places) {
    if (chart.isConnected) continue;
    places.delete(name);
    drawn.delete(chart);
    globalThis.Plotly?.purge(chart);
  }
}

dark.addEventListener("change", () => {
  for (const [chart, { label, traces, layout }] of drawn) if (chart.isConnected) draw(chart, label, traces, layout);
});

const USE = { light: [[226, 232, 239], [160, 200, 235], [74, 144, 217], [240, 170, 60], [200, 60, 40]], dark: [[50, 60, 73], [36, 84, 122], [55, 140, 190], [240, 180, 70], [235, 100, 70]] };
const NUMBER = { light: [[226, 232, 239], [20, 70, 140]], dark: [[50, 60, 73], [140, 200, 255]] };

// A colour of the scale of maps, from 0 to 1. `use`: whether much is scarce, else it is a number alone.
export function heat(share, use = true) {
  if (!Number.isFinite(share)) return "transparent";
  const stops = (use ? USE : NUMBER)[dark.matches ? "dark" : "light"];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[low].map((value, index) => Math.round(value + (stops[low + 1][index] - value) * (at - low)));
  return `rgb(${mixed.join(",")})`;
}

export const scale = (use = true) => `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((each) => heat(each, use)).join(",")})`;
