// Loads some objects through the edge and shows the edge's Cache-Status for each.

const OBJECTS = [
  "images/aurora.svg",
  "images/dunes.svg",
  "images/lattice.svg",
  "images/ripples.svg",
  "images/sluice.svg",
  "data/planets.json",
  "data/rivers.csv",
  "data/feed.xml",
  "data/offsets.bin",
  "text/poem.txt",
  "text/a+b & c.txt",
  "text/größe.txt",
  "text/does-not-exist.txt",
];

const button = document.querySelector("#load");
const summary = document.querySelector("#summary");
const body = document.querySelector("#objects");
const template = document.querySelector("#row");

/** A key as a path, with every segment escaped. */
const path = (key) => "/" + key.split("/").map(encodeURIComponent).join("/");

const isImage = (key) => key.endsWith(".svg");

/** Shows the image that was just received, without a second request. */
function showThumb(thumb, image) {
  const url = URL.createObjectURL(image);
  thumb.style.backgroundImage = `url("${url}")`;
  URL.revokeObjectURL(thumb.dataset.url);
  thumb.dataset.url = url;
}

/** The members of a Cache-Status header (RFC 9211) that the edge wrote, as a map of its parameters. */
function parse(header) {
  const member = (header ?? "").split(",").map((text) => text.trim()).findLast((text) => /^sluice\b/.test(text));
  const parameters = (member ?? "").split(";").slice(1).map((text) => text.trim().split("="));
  return new Map(parameters.map(([name, value]) => [name, value ?? true]));
}

/** The meaning of the parameters, as a word and a colour. */
function verdict(status, ok) {
  if (status.has("hit")) return ["hit", "hit"];
  if (status.has("collapsed")) return ["shared", "hit"];
  if (status.has("fwd")) return [status.get("fwd"), ok ? "miss" : "bad"];
  return ["unknown", "bad"];
}

/** One row for each object, which shows the answers. */
const rows = OBJECTS.map((key) => {
  const row = template.content.firstElementChild.cloneNode(true);
  const part = (name) => row.querySelector(name);
  if (!isImage(key)) part(".thumb").textContent = key.split(".").at(-1);
  part("a").textContent = key;
  part("a").href = path(key);
  row.dataset.key = key;
  body.append(row);
  return { key, row, part };
});

async function load({ key, row, part }) {
  const start = performance.now();
  // no-store, because otherwise the browser's cache would answer instead of the edge's.
  const response = await fetch(path(key), { cache: "no-store" });
  const content = await response.blob();
  const header = response.headers.get("cache-status");
  const age = response.headers.get("age");
  const [word, colour] = verdict(parse(header), response.ok);
  row.dataset.cacheStatus = header ?? "";
  row.dataset.status = response.status;
  part(".pill").textContent = response.ok ? word : `${word} ${response.status}`;
  part(".pill").className = `pill ${colour}`;
  part(".age").textContent = age === null ? "" : `${age} s`;
  part(".bytes").textContent = content.size;
  part(".time").textContent = `${(performance.now() - start).toFixed(1)} ms`;
  part(".header").textContent = header ?? "none";
  if (isImage(key)) showThumb(part(".thumb"), content);
  return word;
}

async function loadAll() {
  button.disabled = true;
  document.body.dataset.state = "loading";
  const answers = await Promise.allSettled(rows.map(load));
  const words = answers.map((answer) => (answer.status === "fulfilled" ? answer.value : "failed"));
  const count = (word) => words.filter((each) => each === word).length;
  const [hits, failed] = [count("hit"), count("failed")];
  summary.textContent =
    `${hits} of ${words.length} out of the cache` + (failed > 0 ? `, ${failed} without an answer` : "");
  document.body.dataset.state = "done";
  button.disabled = false;
}

for (const place of document.querySelectorAll(".origin")) place.textContent = location.origin;
button.addEventListener("click", loadAll);
await loadAll();
