// SPDX-License-Identifier: Apache-2.0
"use strict";

const PERIOD_MS = 2000;
const WINDOW_MS = 10000;
const UNKNOWN = "–";

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

const rate = (value) => value === null ? UNKNOWN : value >= 100 ? number.format(value) : decimal.format(value);
const percent = (value) => value === null ? UNKNOWN : decimal.format(100 * value) + " %";
const count = (value) => value === null ? UNKNOWN : number.format(value);

function bytes(value) {
  if (value === null) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return (unit && value < 100 ? decimal : number).format(value) + " " + units[unit];
}

// The columns of the table: key, heading, text of a value, and the class of a value that needs attention.
const COLUMNS = [
  ["site", "Site", (name) => name || (readings.at(-1).sites.length > 1 ? "(no site)" : "all sites")],
  ["requests", "Requests/s", rate],
  ["hit", "Hits", percent],
  ["errors", "Errors", percent, (value) => value >= 0.05 ? "bad" : value > 0 ? "warn" : ""],
  ["sent", "Out/s", bytes],
  ["origin", "Origin requests/s", rate],
  ["waiting", "Waiting", count],
  ["cache", "Cache, of its share", bytes],
];

let readings = [];
let order = { key: "requests", descending: true };

const ratio = (part, whole) => part === null || !(whole > 0) ? null : part / whole;

// The rates of a site between two of its readings. Without an earlier reading no rate is known.
function ratesOf(now, before, seconds) {
  const grown = (key) => before && seconds > 0 && now[key] !== null
    ? Math.max(0, now[key] - (before[key] ?? 0)) / seconds : null;
  const all = grown("requests");
  const requests = all === null ? null : all - grown("rejected");
  return {
    site: now.site,
    requests,
    hit: ratio(grown("hits"), requests),
    errors: ratio(grown("errors"), requests),
    sent: grown("bytes_sent"),
    origin: grown("origin_requests"),
    waiting: now.waiting,
    cache: now.cache_bytes,
    share: now.cache_share_bytes,
  };
}

function total(reading) {
  const whole = { site: "", cache_share_bytes: reading.cache_limit_bytes };
  for (const key of ["requests", "rejected", "hits", "errors", "bytes_sent", "origin_requests", "waiting", "cache_bytes"]) {
    const values = reading.sites.map((site) => site[key]).filter((value) => value !== null);
    whole[key] = values.length ? values.reduce((sum, value) => sum + value, 0) : null;
  }
  return whole;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function cacheCell(site) {
  const used = ratio(site.cache, site.share);
  const bar = element("i");
  bar.style.setProperty("--used", Math.min(100, 100 * (used ?? 0)) + "%");
  const text = site.share === null ? bytes(site.cache) : bytes(site.cache) + " of " + bytes(site.share);
  return element("div", { className: "cache" }, element("div", { className: "bar" }, bar), element("span", {}, text));
}

function rowOf(site) {
  const row = element("tr");
  for (const [key, heading, text, attention] of COLUMNS) {
    const value = site[key];
    const cell = element(key === "site" ? "th" : "td");
    cell.dataset.column = key;
    cell.dataset.label = heading;
    if (key === "cache") {
      cell.append(cacheCell(site));
    } else {
      cell.textContent = text(value);
      cell.className = attention?.(value) || (value === null || value === 0 ? "idle" : "");
    }
    if (key === "site") {
      cell.scope = "row";
      cell.title = text(value);
    }
    row.append(cell);
  }
  return row;
}

function compare(one, other) {
  const [a, b] = [one[order.key], other[order.key]];
  const sign = order.descending ? -1 : 1;
  const order_of_values = typeof a === "string" ? a.localeCompare(b) : (a ?? -1) - (b ?? -1);
  return sign * order_of_values || one.site.localeCompare(other.site);
}

function showSummary(whole, waiting) {
  const items = [
    ["Requests/s", rate(whole.requests)],
    ["Hits", percent(whole.hit)],
    ["Errors", percent(whole.errors)],
    ["Out/s", bytes(whole.sent)],
    ["Origin requests/s", rate(whole.origin)],
    ["Waiting", count(waiting)],
    ["Cache", bytes(whole.cache), " of " + bytes(whole.share)],
  ];
  document.getElementById("summary").replaceChildren(...items.map(([name, value, more]) => {
    const shown = element("dd", {}, value);
    if (more) shown.append(element("small", {}, more));
    return element("div", {}, element("dt", {}, name), shown);
  }));
}

function showNotices(reading) {
  const notices = [];
  if (reading.sites.some((site) => site.cache_bytes > site.cache_share_bytes && site.cache_share_bytes !== null)) {
    notices.push("A site may use more than its share of the cache while other sites use less.");
  }
  if (reading.unchecked_objects) {
    notices.push(count(reading.unchecked_objects) + " files of earlier runs are not checked yet, and not served.");
  }
  document.getElementById("notice").textContent = notices.join(" ");
}

function show() {
  const now = readings.at(-1);
  if (!now) return;
  const before = readings[0];
  const seconds = (now.at_ms - before.at_ms) / 1000;
  const of_before = new Map(before.sites.map((site) => [site.site, site]));
  // A site that a reload has added since the earlier reading begins at 0.
  const sites = now.sites.map((site) => ratesOf(site, of_before.get(site.site) ?? {}, seconds));
  document.getElementById("sites").replaceChildren(...sites.sort(compare).map(rowOf));
  showSummary(ratesOf(total(now), total(before), seconds), total(now).waiting);
  document.getElementById("version").textContent = now.version;
  showNotices(now);
  document.body.dataset.readings = readings.length;
}

function showHeadings() {
  document.getElementById("columns").replaceChildren(...COLUMNS.map(([key, heading]) => {
    const button = element("button", { type: "button" }, heading);
    button.addEventListener("click", () => {
      order = { key, descending: order.key === key ? !order.descending : key !== "site" };
      showHeadings();
      show();
      document.querySelector("[aria-sort] button").focus();
    });
    const cell = element("th", { scope: "col" }, button);
    cell.dataset.column = key;
    if (order.key === key) cell.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    return cell;
  }));
}

function showState(state, text) {
  document.body.dataset.state = state;
  const shown = document.getElementById("state");
  if (shown.textContent !== text) shown.textContent = text;
}

async function read() {
  const response = await fetch("top.json", { cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (!response.ok) throw new Error(response.status);
  const reading = await response.json();
  const last = readings.at(-1);
  // The totals of a new process begin at 0 again.
  if (last && total(reading).requests < total(last).requests) readings = [];
  readings.push(reading);
  while (readings.length > 2 && reading.at_ms - readings[1].at_ms >= WINDOW_MS) readings.shift();
}

async function turn() {
  if (!document.hidden) {
    try {
      await read();
      show();
      showState("live", "live");
    } catch {
      showState("lost", "The edge does not answer");
    }
  }
  setTimeout(turn, readings.length < 2 ? PERIOD_MS / 2 : PERIOD_MS);
}

document.addEventListener("visibilitychange", () => {
  // The readings from before the pause are old.
  if (!document.hidden) readings = [];
});
showHeadings();
turn();
