// The page of html.h around its data: style, controls and the script that plays the recording.
#pragma once

namespace engine {

/// The page up to the data.
inline constexpr const char* kPageBeforeData = R"PAGE(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Decoscope recording</title>
<style>
:root { color-scheme: light dark; --line: #8886; --dim: #777; --accepted: #2e9d5b; --bonus: #3f7fd0; --rejected: #d07a2e; --mark: #c9a11d; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 110rem; }
h1 { font-size: 1.3rem; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0; }
.dim { color: var(--dim); }
.prompt, .text { white-space: pre-wrap; overflow-wrap: anywhere; }
.prompt { border-left: 3px solid var(--line); padding-left: .7rem; max-height: 9rem; overflow: auto; }
.controls { display: flex; gap: .6rem; align-items: center; position: sticky; top: 0; background: Canvas; padding: .5rem 0; flex-wrap: wrap; }
.controls input[type=range] { flex: 1; min-width: 12rem; }
button, select { font: inherit; padding: .15rem .7rem; }
.lanes { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: .8rem; }
.lane { border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; }
.lane[aria-current=true] { outline: 2px solid var(--bonus); }
.text { min-height: 8rem; font-family: ui-monospace, monospace; font-size: .92rem; }
.accepted { background: color-mix(in srgb, var(--accepted) 28%, transparent); border-bottom: 2px solid var(--accepted); }
.bonus { border-bottom: 2px dotted var(--bonus); }
.approximate { border-bottom: 2px dashed var(--mark); }
.old { background: none; opacity: .85; }
.guesses { font-family: ui-monospace, monospace; font-size: .85rem; min-height: 1.6rem; overflow-wrap: anywhere; }
.guesses span { border: 1px solid var(--line); border-radius: .2rem; padding: 0 .25rem; margin-right: .2rem; white-space: pre; }
.guesses .a { border-color: var(--accepted); } .guesses .r { border-color: var(--rejected); text-decoration: line-through; }
.guesses .u { opacity: .6; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<main>
<h1 id="title">Decoscope recording</h1>
<p class="dim" id="about"></p>
<label for="race" class="dim">Prompt </label><select id="race"></select>
<div class="prompt" id="prompt" tabindex="0" role="region" aria-label="Prompt"></div>
<div class="controls">
<button id="play" aria-label="Play or pause (space)">Play</button>
<button id="back" aria-label="Previous step (left arrow)">&#8592; step</button>
<button id="next" aria-label="Next step (right arrow)">step &#8594;</button>
<input type="range" id="time" min="0" max="1000" value="0" aria-label="Own compute of the lanes">
<span id="clock"></span>
<label>speed <select id="speed"><option>0.1</option><option>0.25</option><option>0.5</option><option selected>1</option></select></label>
</div>
<p id="words" aria-live="polite"></p>
<div class="lanes" id="lanes"></div>
<table id="figures"><caption class="dim">All lanes, at the end of the recording. Tokens are counted; rates, speed-ups and shares are derived from measured figures</caption></table>
<table id="repeats" hidden><caption class="dim">Repeated races: median (first to third quartile) of the runs that ended by themselves</caption></table>
<p class="dim"><span class="accepted">green</span>: proposed and accepted &#183; <span class="bonus">dotted</span>: the model's own token after accepted ones &#183;
<span class="approximate">dashed</span>: not verified &#183; below the text: the proposals of the step (<s>struck out</s>: rejected).
Keys: left and right arrow: steps of the chosen lane; up and down arrow: other lane; Home, End; space: play. All lanes stand at the same own compute.</p>
<noscript>This page needs JavaScript to play the recording. `decoscope trace convert` also writes it as text (.txt) and tables (.csv).</noscript>
</main>
<script type="application/json" id="data">)PAGE";

/// The page after the data.
inline constexpr const char* kPageAfterData = R"PAGE(</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const races = [];
for (const run of data.runs) {
  const same = races.find((race) => run.race > 0 && race[0].race === run.race);
  if (same) same.push(run); else races.push([run]);
}
let race = races[0] || [], chosen = 0, time = 0, playing = 0;
const end = () => Math.max(0, ...race.map((run) => run.steps.length ? run.steps[run.steps.length - 1].ms : 0));
const done = (run) => { let n = 0; while (n < run.steps.length && run.steps[n].ms <= time + 1e-9) n++; return n; };
const count = (n, what) => n + " " + what + (n === 1 ? "" : "s");

function sentence(run, n) {
  if (n === 0) return run.name + ": before its first step.";
  const s = run.steps[n - 1];
  let text = run.name + ", step " + n + " of " + run.steps.length + ": ";
  text += s.proposed ? s.proposed + " proposed, " + s.accepted + " accepted" : "nothing proposed";
  return text + "; " + count(s.tokens, "token") + ", in total " + s.total + ".";
}

function show(speak) {
  race.forEach((run, i) => {
    const n = done(run), step = n ? run.steps[n - 1] : null, total = step ? step.total : 0;
    const first = step ? step.total - step.tokens : 0;
    const text = at("text" + i);
    text.replaceChildren(...run.tokens.slice(0, total).map(([piece, status], k) => {
      const span = document.createElement("span");
      span.textContent = piece;
      span.className = status + (k < first ? " old" : "");
      return span;
    }));
    const guesses = at("guesses" + i);
    guesses.replaceChildren(...(step && step.guesses || []).map(([piece, fate]) => {
      const span = document.createElement("span");
      span.textContent = piece;
      span.className = fate;
      return span;
    }));
    at("state" + i).textContent = count(n, "step") + " · " + count(total, "token") + (n ? " · " + (total / n).toFixed(2) + " tokens/step" : "") +
      (n === run.steps.length && n ? " · ended: " + run.end : "");
    at("lane" + i).setAttribute("aria-current", i === chosen);
  });
  at("clock").textContent = time.toFixed(1) + " of " + end().toFixed(1) + " ms";
  at("time").value = end() ? 1000 * time / end() : 0;
  at("time").setAttribute("aria-valuetext", at("clock").textContent);
  if (speak && race.length) at("words").textContent = sentence(race[chosen], done(race[chosen]));
}

function open(index) {
  race = races[index] || []; chosen = 0; time = 0; stop();
  at("prompt").textContent = race.length ? race[0].prompt : "";
  at("lanes").replaceChildren(...race.map((run, i) => {
    const lane = document.createElement("section");
    lane.id = "lane" + i; lane.className = "lane"; lane.setAttribute("aria-labelledby", "name" + i);
    lane.onclick = () => { chosen = i; show(true); };
    for (const [tag, id, name] of [["h2", "name", ""], ["div", "settings", "dim"], ["div", "state", "dim"], ["div", "text", "text"], ["div", "guesses", "guesses"]]) {
      const part = document.createElement(tag);
      part.id = id + i; part.className = name;
      if (id === "name") part.textContent = run.name + (run.model ? " · " + run.model : "");
      if (id === "settings") part.textContent = run.settings;
      lane.append(part);
    }
    return lane;
  }));
  show(true);
}

function step(by) {
  stop();
  const run = race[chosen];
  if (!run) return;
  const n = Math.min(run.steps.length, Math.max(0, done(run) + by));
  time = n ? run.steps[n - 1].ms : 0;
  show(true);
}
function stop() { playing = 0; at("play").textContent = "Play"; }
function play() {
  if (playing) return stop();
  if (time >= end()) time = 0;
  const mine = playing = performance.now();
  let last = mine;
  at("play").textContent = "Pause";
  const frame = (now) => {
    if (playing !== mine) return;
    time = Math.min(end(), time + Math.max(0, now - last) * Number(at("speed").value));
    last = now;
    show(false);
    if (time >= end()) { stop(); show(true); } else requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

at("title").textContent = data.title;
at("about").textContent = data.about;
races.forEach((lanes, i) => at("race").add(new Option((lanes[0].prompt_id || "run " + lanes[0].id) + (lanes[0].repeat && ", repeat " + lanes[0].repeat) +
  ": " + count(lanes.length, "lane"), i)));
at("race").onchange = () => open(Number(at("race").value));
at("play").onclick = play;
at("back").onclick = () => step(-1);
at("next").onclick = () => step(1);
at("time").oninput = () => { stop(); time = end() * at("time").value / 1000; show(false); };
document.addEventListener("keydown", (event) => {
  if (["SELECT", "INPUT"].includes(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
  const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => { stop(); time = 0; show(true); },
    End: () => { stop(); time = end(); show(true); }, ArrowUp: () => { chosen = Math.max(0, chosen - 1); show(true); },
    ArrowDown: () => { chosen = Math.min(race.length - 1, chosen + 1); show(true); } };
  if (event.key === " " && event.target.tagName !== "BUTTON") keys[" "] = play;
  if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
});
const row = (table, cells, tag) => {
  const line = at(table).insertRow();
  for (const [text, number] of cells) {
    const cell = document.createElement(tag);
    cell.textContent = text;
    if (tag === "th") cell.scope = "col";
    if (number) cell.className = "n";
    line.append(cell);
  }
};
row("figures", [["run"], ["decoder"], ["model"], ["prompt"], ["tokens", 1], ["tokens/step", 1], ["tokens/s", 1], ["speed-up", 1], ["accepted of proposed", 1], ["as plain decoding"]], "th");
for (const run of data.runs)
  row("figures", [[run.id], [run.name], [run.model], [run.prompt_id], [run.tokens.length, 1], [run.tokens_per_step, 1], [run.tokens_per_second, 1], [run.speedup, 1],
    [run.accepted, 1], [run.identical]], "td");
at("repeats").hidden = !data.repeats.length;
row("repeats", [["decoder"], ["model"], ["prompt"], ["runs", 1], ["tokens/step", 1], ["tokens/s", 1], ["speed-up", 1]], "th");
for (const lane of data.repeats)
  row("repeats", [[lane.name], [lane.model], [lane.prompt_id], [lane.runs, 1], [lane.tokens_per_step, 1], [lane.tokens_per_second, 1], [lane.speedup, 1]], "td");
open(0);
</script>
</body>
</html>
)PAGE";

}  // namespace engine
