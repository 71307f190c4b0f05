// The page's script: asks /api/state every second and /api/picks every two, and shows what they
// say. Reads only. Builds every element by hand: no text of an answer is ever taken as markup.
"use strict";
(() => {
const STATE_MS = 1000, PICKS_MS = 2000, TIMEOUT_MS = 5000, RETRY_MS_MAX = 8000;
const WINDOW_S = 300;
const NO_DATA = "–";
const $ = (id) => document.getElementById(id);

// ---- elements ----------------------------------------------------------------------------------

function fill(element, children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
function make(document_make, name, attributes, children) {
  const element = document_make(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  return fill(element, children);
}
const h = (name, attributes, ...children) =>
  make((n) => document.createElement(n), name, attributes, children);
const s = (name, attributes, ...children) =>
  make((n) => document.createElementNS("http://www.w3.org/2000/svg", n), name, attributes, children);

// ---- numbers for people ------------------------------------------------------------------------

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const or = (format) => (value) => known(value) ? format(value) : NO_DATA;
const digits = (value, most) => value.toLocaleString("en", {maximumFractionDigits: most});
const count = or((value) => {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) {
      const unit = letter === "k" ? 1e3 : size;
      return digits(value / unit, value / unit < 100 ? 1 : 0) + " " + letter;
    }
  }
  return digits(value, value < 10 ? 1 : 0);
});
const whole = or((value) => digits(value, 0));
const percent = or((value) => digits(value * 100, value < .1 ? 1 : value > .995 ? 1 : 0) + " %");
const bytes = or((value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; ++at; }
  return digits(value, value < 10 ? 1 : 0) + " " + units[at];
});
const seconds = or((value) => {
  if (value <= 0) return "0";
  if (value < 1e-6) return digits(value * 1e9, 0) + " ns";
  if (value < 1e-3) return digits(value * 1e6, value < 1e-5 ? 1 : 0) + " µs";
  if (value < 1) return digits(value * 1e3, value < 1e-2 ? 1 : 0) + " ms";
  return digits(value, value < 10 ? 2 : 1) + " s";
});
const span = or((value) => {
  if (value < 1) return "now";
  if (value < 60) return Math.floor(value) + " s";
  if (value < 3600) return Math.floor(value / 60) + " min";
  if (value < 86400) return Math.floor(value / 3600) + " h " + Math.floor(value % 3600 / 60) + " min";
  return Math.floor(value / 86400) + " d " + Math.floor(value % 86400 / 3600) + " h";
});
const plural = (value, word) => whole(value) + " " + word + (value === 1 ? "" : "s");

// ---- what is known -----------------------------------------------------------------------------

let state = null;
let points = [];
let answered_ms = 0;

function take(next) {
  // Another process counts its points anew.
  if (!state || state.pid !== next.pid || next.uptime_s < state.uptime_s) points = [];
  const last = points.length ? points[points.length - 1].n : 0;
  points.push(...next.points.filter((point) => point.n > last));
  points = points.slice(-2 * WINDOW_S);
  state = next;
}

// ---- charts ------------------------------------------------------------------------------------

const CHARTS = [
  {title: "Picks per second", format: count, floor: 1,
   series: [{key: "picks", name: "picks"}, {key: "refused", name: "refused"}]},
  {title: "Cache hit rate", format: percent, top: 1,
   series: [{key: "match", name: "assumed at the pick"}, {key: "reported", name: "reported by engines"}]},
  {title: "Pick latency", format: seconds, floor: 1e-6, log: true,
   series: [{key: "p50", name: "median"}, {key: "p99", name: "99th percentile"}]},
  {title: "TTFT prediction error", format: percent, floor: .1,
   series: [{key: "error", name: "mean of |predicted − measured| / measured"}]},
];
const HEIGHT = 132, LEFT = 46, BOTTOM = 18, TOP = 6;

// Where a value stands between the bottom and the top of the chart, 0 to 1, and what is marked.
function scale_of({top, floor, log}, values) {
  if (log) {
    const high = Math.ceil(Math.log10(Math.max(10 * floor, ...values)) - 1e-9);
    const low = Math.min(high - 1, Math.floor(Math.log10(Math.max(floor, Math.min(...values, 10 ** high)))));
    const ticks = [];
    for (let at = low; at <= high; at += Math.ceil((high - low) / 3)) ticks.push(10 ** at);
    return {share: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low), ticks};
  }
  const most = top || round_up(Math.max(floor, ...values));
  return {share: (value) => Math.min(value, most) / most, ticks: [0, most / 2, most]};
}

// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `value`.
function round_up(value) {
  const power = Math.pow(10, Math.floor(Math.log10(value)));
  for (const step of [1, 2, 2.5, 5, 10]) if (value <= step * power * 1.0001) return step * power;
  return 10 * power;
}

class Chart {
  constructor(spec) {
    this.spec = spec;
    this.now = h("div", {class: "now"});
    this.legend = h("div", {class: "legend"});
    this.svg = s("svg", {role: "img"});
    this.hover_s = null;
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (box.width - LEFT);
      this.hover_s = Math.max(0, Math.min(1, 1 - share)) * WINDOW_S;
      this.draw();
    });
    this.svg.addEventListener("pointerleave", () => { this.hover_s = null; this.draw(); });
    this.element = h("article", {class: "chart"}, h("h2", null, spec.title),
                     h("div", {class: "row"}, this.now, this.legend), this.svg);
  }

  // The point that is closest to what the pointer is at, else the newest.
  focus(now_ms, shown) {
    if (this.hover_s === null) return null;
    const at = now_ms - this.hover_s * 1000;
    let best = null;
    for (const point of shown)
      if (best === null || Math.abs(point.t - at) < Math.abs(best.t - at)) best = point;
    return best;
  }

  draw() {
    const {series, format} = this.spec;
    const width = Math.max(200, this.svg.clientWidth || 600);
    const now_ms = points.length ? points[points.length - 1].t : Date.now();
    const shown = points.filter((point) => point.t >= now_ms - WINDOW_S * 1000);
    const values = shown.flatMap((point) => series.map((one) => point[one.key])).filter(known);
    const {share, ticks} = scale_of(this.spec, values);
    const x = (point) => LEFT + (width - LEFT) * (1 - (now_ms - point.t) / (WINDOW_S * 1000));
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share(value));
    const ground = HEIGHT - BOTTOM;
    const parts = [];
    for (const tick of ticks) {
      const at = Math.round(y(tick)) + .5;
      parts.push(s("line", {class: "grid", x1: LEFT, x2: width, y1: at, y2: at}),
                 s("text", {class: "tick", x: LEFT - 8, y: at + 3.5, "text-anchor": "end"},
                   tick === 0 ? "0" : format(tick)));
    }
    parts.push(s("text", {class: "tick", x: LEFT, y: HEIGHT - 2}, "5 min ago"),
               s("text", {class: "tick", x: width, y: HEIGHT - 2, "text-anchor": "end"}, "now"));
    series.forEach((one, index) => {
      for (const run of this.runs(shown, one.key)) {
        const line = run.map((point, at) =>
          (at ? "L" : "M") + x(point).toFixed(1) + " " + y(point[one.key]).toFixed(1)).join("");
        if (index === 0 && run.length > 1) {
          parts.push(s("path", {class: "area", d: line + "L" + x(run[run.length - 1]).toFixed(1) + " " +
            ground + "L" + x(run[0]).toFixed(1) + " " + ground + "Z"}));
        }
        parts.push(s("path", {class: index ? "line second" : "line", d: run.length > 1 ? line : line + "h.01"}));
      }
    });
    if (!values.length) {
      parts.push(s("text", {class: "none", x: (LEFT + width) / 2, y: HEIGHT / 2},
                   state ? "nothing to show so far" : "loading"));
    }
    const focus = this.focus(now_ms, shown);
    if (focus) {
      parts.push(s("line", {class: "cross", x1: x(focus), x2: x(focus), y1: TOP, y2: HEIGHT - BOTTOM}));
      series.forEach((one, index) => known(focus[one.key]) && parts.push(
        s("circle", {class: index ? "mark second" : "mark", cx: x(focus), cy: y(focus[one.key]), r: 4})));
    }
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    fill(this.svg, parts);
    this.words(focus || this.newest(shown), focus ? (now_ms - focus.t) / 1000 : null);
  }

  // A second without picks has no percentile: the newest that there is, of the last ten seconds.
  newest(shown) {
    const newest = {};
    for (const point of shown.slice(-10))
      for (const {key} of this.spec.series) if (known(point[key])) newest[key] = point[key];
    return newest;
  }

  words(point, age_s) {
    const {series, format, title} = this.spec;
    this.now.textContent = format(point[series[0].key]);
    fill(this.legend, [
      ...series.map((one, index) => h("span", null, h("i", {class: index ? "key second" : "key"}),
        one.name + (index ? " " : ""), index ? h("b", null, format(point[one.key])) : null)),
      age_s === null ? null : h("span", null, Math.round(age_s) + " s ago")]);
    this.svg.setAttribute("aria-label", title + ": " + series.map((one) =>
      one.name + " " + format(point[one.key])).join(", "));
  }

  // Pieces without a gap.
  runs(shown, key) {
    const runs = [];
    let run = [];
    for (const point of shown) {
      const gap = run.length && point.t - run[run.length - 1].t > 4500;
      if ((!known(point[key]) || gap) && run.length) { runs.push(run); run = []; }
      if (known(point[key])) run.push(point);
    }
    if (run.length) runs.push(run);
    return runs;
  }
}
const charts = CHARTS.map((spec) => new Chart(spec));
fill($("charts"), charts.map((chart) => chart.element));
new ResizeObserver(() => charts.forEach((chart) => chart.draw())).observe($("charts"));

// ---- head --------------------------------------------------------------------------------------

function draw_head() {
  const pill = $("ready");
  pill.className = "pill " + (state.ready ? "good" : "bad");
  pill.textContent = state.ready ? "ready" : "not ready";
  $("about").textContent = `${state.version} · profile ${state.profile} · up ${span(state.uptime_s)}`;
  const wrong = state.readiness.filter((check) => !check.ok).map((check) => check.why);
  $("banner").hidden = wrong.length === 0;
  $("banner").textContent = wrong.join(" · ");
  document.title = (state.ready ? "" : "not ready · ") + "pickd";
}

function draw_facts() {
  const ready = state.endpoints.filter((one) => one.state === "ready").length;
  const fact = (name, value, small) =>
    h("div", null, h("dt", null, name), h("dd", null, value, small ? h("small", null, " " + small) : null));
  const {counters} = state;
  fill($("facts"), [
    fact("Endpoints ready", ready + " / " + state.endpoints_all),
    fact("Requests in flight", whole(state.reservations)),
    fact("Picks answered", count(counters.picks), counters.refused ? count(counters.refused) + " refused" : ""),
    fact("Requests done", count(counters.requests_done),
         counters.requests_failed ? count(counters.requests_failed) + " failed" : ""),
    fact("Hit rate so far", counters.prompt_blocks ? percent(counters.match_blocks / counters.prompt_blocks) : NO_DATA,
         counters.reported_prompt_tokens
           ? percent(counters.reported_cached_tokens / counters.reported_prompt_tokens) + " reported" : ""),
    fact("Prefix table in use", percent(state.words ? state.words_live / state.words : null), "of " + bytes(state.state_bytes)),
    fact("Clients", whole(state.clients), plural(state.channels, "channel")),
  ]);
}

// ---- endpoints ---------------------------------------------------------------------------------

function meter(share, words, kind) {
  const bar = h("i");
  if (known(share)) bar.style.width = Math.max(0, Math.min(1, share)) * 100 + "%";
  const level = kind === "load" && share > .97 ? " full" : kind === "load" && share > .85 ? " high" : "";
  return h("div", {class: "meter"}, h("div", {class: "bar" + level}, bar), h("span", null, words));
}
const hit_share = (one) => one.prompt_blocks ? one.match_blocks / one.prompt_blocks : null;
const queue = (one) => (one.running ?? 0) + (one.waiting ?? 0);
const STATES = ["down", "suspect", "starting", "draining", "ready"];
const COLUMNS = [
  {title: "Endpoint", by: (one) => one.name, cell: (one) => [h("div", {class: "name"}, one.name),
    h("div", {class: "sub"}, one.address + (one.pool === "default" ? "" : " · " + one.pool))]},
  {title: "State", by: (one) => STATES.indexOf(one.state), cell: (one) =>
    h("span", {class: "pill " + one.state, title: one.why || null}, one.state)},
  {title: "In flight", num: true, by: (one) => one.inflight, cell: (one) => whole(one.inflight)},
  {title: "Running + waiting", num: true, by: queue, cell: (one) =>
    known(one.running) || known(one.waiting) ? whole(one.running) + " + " + whole(one.waiting) : NO_DATA},
  {title: "KV cache", by: (one) => one.kv_use ?? -1, cell: (one) => meter(one.kv_use, percent(one.kv_use), "load")},
  {title: "Cached blocks", by: (one) => one.blocks, cell: (one, all) =>
    meter(one.blocks / (one.capacity || all.blocks_max || 1), count(one.blocks), "cache")},
  {title: "Picks", by: (one) => one.picks, cell: (one, all) =>
    meter(all.picks ? one.picks / all.picks_max : null, count(one.picks), "share")},
  {title: "Hit rate", num: true, by: (one) => hit_share(one) ?? -1, cell: (one) => percent(hit_share(one))},
  {title: "Told", num: true, by: (one) => one.load_age_s ?? Infinity, cell: (one) =>
    known(one.load_age_s) ? (one.load_age_s < 1 ? "now" : span(one.load_age_s) + " ago") : NO_DATA},
];
let sort_at = 0, sort_down = false, filter = "";
$("filter").addEventListener("input", (event) => { filter = event.target.value.toLowerCase(); draw_endpoints(); });

function sort_by(index) {
  sort_down = sort_at === index ? !sort_down : index > 1;
  sort_at = index;
  draw_endpoints();
  $("endpoints").querySelectorAll("th button")[index].focus();
}
function ordered(list) {
  const {by} = COLUMNS[sort_at];
  const order = (a, b) => typeof by(a) === "string" ? by(a).localeCompare(by(b), "en", {numeric: true}) : by(a) - by(b);
  return [...list].sort((a, b) => (sort_down ? -1 : 1) * order(a, b) || a.name.localeCompare(b.name, "en", {numeric: true}));
}
let heads = null;
function draw_endpoints() {
  if (!state) return;
  const table = $("endpoints");
  const {endpoints} = state;
  $("filter").hidden = endpoints.length < 9;
  $("endpoints-note").textContent = endpoints.length < state.endpoints_all
    ? `the first ${endpoints.length} of ${state.endpoints_all}; admin.endpoints_max says how many` : "";
  if (!endpoints.length) {
    heads = null;
    return fill(table, [h("tbody", null, h("tr", null, h("td", {class: "empty"},
      "No endpoints so far. They come from the configuration, from discovery, or by ",
      h("code", null, "pickctl add"), ".")))]);
  }
  if (!heads) {  // kept, so that a button that has the focus keeps it
    heads = COLUMNS.map((column, index) => h("th", {scope: "col", class: column.num ? "num" : null},
      h("button", {type: "button", onclick: () => sort_by(index)}, column.title)));
    fill(table, [h("thead", null, h("tr", null, heads)), h("tbody")]);
  }
  heads.forEach((head, index) => head.setAttribute("aria-sort",
    index !== sort_at ? "none" : sort_down ? "descending" : "ascending"));
  const most = (value) => Math.max(0, ...endpoints.map(value));
  const all = {blocks_max: most((one) => one.blocks), picks_max: most((one) => one.picks),
               picks: endpoints.reduce((sum, one) => sum + one.picks, 0)};
  const chosen = ordered(endpoints.filter((one) =>
    !filter || [one.name, one.address, one.pool, one.state, ...one.models].join(" ").toLowerCase().includes(filter)));
  fill(table.tBodies[0], chosen.length ? chosen.map((one) => h("tr", null, COLUMNS.map((column) =>
    h("td", {class: column.num ? "num" : null}, column.cell(one, all))))) :
    [h("tr", null, h("td", {class: "empty", colspan: COLUMNS.length}, "No endpoint matches the filter."))]);
}

// ---- picks -------------------------------------------------------------------------------------

const REASONS = {
  score: "highest score", tie: "drawn among equals", prefix: "longest match", session: "its session", only: "only candidate",
  policy: "by policy", fallback: "least bad", unpredicted: "without prediction", none: NO_DATA,
};
const winner_of = (pick) => {
  const stage = pick.stages.find((one) => one.name === "pick") || pick.stages[0];
  return stage ? stage.candidates.find((one) => one.place === 1) : undefined;
};
const SHOWN_COLUMNS = [["match blocks", "match blocks", whole], ["uncached tokens", "uncached tokens", whole],
  ["in-flight requests", "in flight", whole], ["waiting", "waiting", whole], ["KV use", "KV cache", percent],
  ["predicted time to the first token", "TTFT", seconds], ["predicted cost", "cost", seconds]];

function stage_table(stage) {
  const shown = SHOWN_COLUMNS.filter(([key]) => stage.candidates.some((one) => known(one.columns[key])));
  const score = or((value) => digits(value, 3));
  return h("div", {class: "scroll"}, h("table", null,
    h("thead", null, h("tr", null, h("th", null, "candidate"),
      shown.map(([, title]) => h("th", {class: "num"}, title)),
      stage.scorers.map((one) => h("th", {class: "num"}, one.name + " × " + digits(one.weight, 2))),
      h("th", {class: "num"}, "sum"), h("th", {class: "num"}, "place"))),
    h("tbody", null, stage.candidates.map((one) =>
      h("tr", {class: one.place === 1 ? "won" : one.dropped_by ? "dropped" : null}, h("td", null, one.name),
        shown.map(([key, , format]) => h("td", {class: "num"}, format(one.columns[key]))),
        stage.scorers.map((_, at) => h("td", {class: "num"}, score(one.scores[at]))),
        h("td", {class: "num"}, one.dropped_by ? "" : score(one.sum)),
        h("td", {class: "num"}, one.dropped_by ? "left out by " + one.dropped_by : one.place || ""))))));
}
function why(pick) {
  const parts = [];
  if (pick.refused) parts.push(h("p", null, "Refused: " + pick.refused));
  if (pick.left_out) parts.push(h("p", null, plural(pick.left_out, "endpoint") + " that serve" + (pick.left_out === 1 ? "s" : "") +
                                  " the model could not be picked."));
  for (const stage of pick.stages) {
    const rest = stage.candidates_all - stage.candidates.length;
    parts.push(h("p", null, `${stage.name}, profile ${stage.profile}: ${plural(stage.candidates_all, "candidate")}` +
      (stage.ties > 1 ? `, ${stage.ties} share the first place` : "") + (stage.least_bad ? "; nobody was ready" : "") +
      (rest > 0 ? `; the best ${stage.candidates.length} are shown` : "")), stage_table(stage));
  }
  return h("div", {class: "why"}, parts);
}
function pick_row(pick) {
  const won = winner_of(pick);
  const share = won && pick.prompt_blocks ? (won.columns["match blocks"] ?? 0) / pick.prompt_blocks : null;
  const details = h("details", {class: "pick"},
    h("summary", null, h("span", {class: "sub"}, pick.age_s < 1 ? "now" : span(pick.age_s) + " ago"),
      h("span", {class: "name"}, pick.status === 0 && won ? won.name : h("span", {class: "pill bad"}, "refused")),
      h("span", {class: "wide"}, pick.model || "any model", pick.adapter ? h("span", {class: "sub"}, " " + pick.adapter) : null),
      h("span", {class: "num wide"}, count(pick.prompt_tokens) + " tokens"),
      h("span", {class: "wide"}, meter(share, percent(share), "share")),
      h("span", {class: "num wide"}, seconds(known(pick.predicted_ttft_ms) ? pick.predicted_ttft_ms / 1000 : null)),
      h("span", null, h("span", {class: "pill plain"}, REASONS[pick.reason] || pick.reason))));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(why(pick));
    draw_picks_note();
  });
  return details;
}
const picks_open = () => $("picks").querySelector("details[open]") !== null;
function draw_picks_note() {
  $("picks-note").textContent = picks_open() ? "stands still while a pick is open"
    : "a sample of each worker (explain.picks_per_s); open one to see why it went there";
}
function draw_picks(picks) {
  draw_picks_note();
  if (picks_open()) return;
  if (!picks.length) {
    return fill($("picks"), [h("p", {class: "empty"}, "No picks so far. A gateway that asks, or ",
      h("code", null, "./dev demo --page"), ", fills this.")]);
  }
  fill($("picks"), [h("div", {class: "picks-head"}, ["", "when", "went to", "model", "prompt", "match", "predicted TTFT", "won by"]
    .map((title, at) => h("span", {class: at === 4 || at === 6 ? "num" : null}, title))), ...picks.map(pick_row)]);
}

// ---- models ------------------------------------------------------------------------------------

function draw_models() {
  const rows = state.classes.flatMap((one) => [["TTFT", one.ttft], ["ITL", one.itl]].map(([time, model]) => ({one, time, model})))
    .filter(({model}) => model.samples > 0);
  if (!rows.length) {
    return fill($("models"), [h("tbody", null, h("tr", null, h("td", {class: "empty"},
      "Nothing learned so far: that takes streamed requests whose first token and end are reported.")))]);
  }
  const verdict = (model) => 
    model.drifting ? ["warn", "drifting", "its error of late is far above that of before"]
    : model.ready ? ["good", "ready", "closer than saying the mean each time"]
    : ["", "not ready", "few samples, or not closer than saying the mean each time"];
  fill($("models"), [h("thead", null, h("tr", null, ["Class", "Time", "State"].map((title) => h("th", null, title)),
      ["Samples", "Error", "Bias", "At or below the percentile"].map((title) => h("th", {class: "num"}, title)))),
    h("tbody", null, rows.map(({one, time, model}) => {
      const [kind, word, meaning] = verdict(model);
      return h("tr", null, h("td", {class: "name"}, one.name || "all engines"), h("td", null, time),
        h("td", null, h("span", {class: "pill " + kind, title: meaning}, word)), h("td", {class: "num"}, count(model.samples)),
        h("td", {class: "num"}, percent(model.error)), h("td", {class: "num"}, (model.bias > 0 ? "+" : "") + percent(model.bias)),
        h("td", {class: "num"}, percent(model.coverage)));
    }))]);
}

// ---- asking ------------------------------------------------------------------------------------

function live(on, words) {
  $("live").className = "live " + (on ? "on" : "off");
  $("live-words").textContent = words;
}
async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(TIMEOUT_MS), cache: "no-store"});
  if (!answer.ok) throw new Error("status " + answer.status);
  return answer.json();
}
function draw() {
  draw_head();
  draw_facts();
  draw_endpoints();
  draw_models();
  charts.forEach((chart) => chart.draw());
}
// One question after another, each some time after the answer before; longer while nobody answers.
function repeat(every_ms, turn, failed) {
  let wait_ms = every_ms;
  const next = async () => {
    if (!document.hidden) {
      try {
        await turn();
        wait_ms = every_ms;
      } catch (error) {
        wait_ms = Math.min(RETRY_MS_MAX, 1.5 * wait_ms);
        failed(error);
      }
    }
    setTimeout(next, document.hidden ? every_ms : wait_ms);
  };
  next();
}
repeat(STATE_MS, async () => {
  take(await ask("/api/state?since=" + (points.length ? points[points.length - 1].n : 0)));
  answered_ms = Date.now();
  live(true, "live");
  draw();
}, () => live(false, "reconnecting" + (answered_ms ? ", last seen " + span((Date.now() - answered_ms) / 1000) + " ago" : "")));
repeat(PICKS_MS, async () => draw_picks((await ask("/api/picks")).picks), () => {});
charts.forEach((chart) => chart.draw());
})();
