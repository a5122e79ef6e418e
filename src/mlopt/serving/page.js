// The script of the page: asks the service, shows what it says. Nothing is loaded from elsewhere.
"use strict";
const $ = id => document.getElementById(id);
let token = sessionStorage.getItem("token") || "", seen = null, rates = [], waits = [];
const headers = more => token ? {authorization: "Bearer " + token, ...more} : {...more};
const put = (tag, text, to, name) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  to.append(made);
  return made;
};
const line = (values, id) => {
  const top = Math.max(...values, 1e-9);
  const at = values.map((v, i) => `${600 - 10 * (values.length - 1 - i)},${66 - 60 * v / top}`);
  $(id).setAttribute("points", at.join(" "));
};
const short = seconds => !isFinite(seconds) ? "–"
  : seconds < 1 ? `${(1000 * seconds).toPrecision(2) * 1} ms` : `${seconds.toPrecision(2) * 1} s`;

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (answer.status == 401) { $("login").hidden = false; throw Error("a token is needed"); }
  return answer;
}

async function start() {
  const schema = await (await ask("schema", {headers: headers()})).json(), card = schema.card;
  $("login").hidden = true;
  $("title").textContent = card.file;
  $("lead").textContent = `${card.task}, ${schema.columns.length} columns, ${card.steps.join(" → ")}`;
  $("card").replaceChildren();
  for (const [name, value] of Object.entries(card)) {
    if (["file", "task", "steps"].includes(name)) continue;
    const row = put("tr", undefined, $("card"));
    put("td", name.replaceAll("_", " "), row);
    put("td", typeof value == "object" ? Object.entries(value).map(
      ([k, v]) => Array.isArray(value) ? v : `${k} = ${v}`).join(", ") : value, row, "params");
  }
  $("row").replaceChildren();
  for (const column of schema.columns) {
    const label = put("label", column.name, $("row"));
    const choices = column.kind == "category" && column.values.length > 0;
    const field = put("input", undefined, label);
    field.name = column.name;
    const number = column.values.some(v => typeof v == "number");
    const text = column.kind == "value" && typeof column.example == "string";
    field.dataset.kind = number ? "number" : text ? "text" : column.kind;
    if (choices) {  // the first of them: there may be more
      const list = put("datalist", undefined, label);
      list.id = `values-${schema.columns.indexOf(column)}`;
      field.setAttribute("list", list.id);
      for (const value of column.values) put("option", value, list).value = value;
    }
    field.value = column.kind == "vector" ? JSON.stringify(column.example) : column.example;
  }
  $("row").dataset.proba = schema.probabilities;
  put("button", "Predict", $("row")).type = "submit";
}

const cell = field => {
  if (field.value.trim() == "") return null;
  if (field.dataset.kind == "vector") return JSON.parse(field.value);
  const number = Number(field.value);
  return ["number", "value"].includes(field.dataset.kind) && !isNaN(number) ? number : field.value;
};

async function predict(event) {
  event.preventDefault();
  const fields = [...$("row").querySelectorAll("[name]")];
  const row = Object.fromEntries(fields.map(field => [field.name, cell(field)]));
  const begin = performance.now(), out = $("answer");
  const answer = await ask("predict" + ($("row").dataset.proba == "true" ? "?proba=true" : ""), {
    method: "POST", body: JSON.stringify([row]),
    headers: headers({"content-type": "application/json"})});
  const said = await answer.json();
  out.replaceChildren();
  if (!answer.ok) { put("p", said.error, out, "error"); return; }
  const given = Object.entries(said).filter(([n, v]) => Array.isArray(v) && n != "remarks");
  for (const [name, [value]] of given.filter(([n]) => !n.startsWith("probability_")))
    put("b", name == "prediction" ? value : `${name}: ${value}`, put("div", undefined, out));
  put("p", `in ${short((performance.now() - begin) / 1000)}, by model ${said.model}`, out, "note");
  for (const [name, [share]] of given.filter(([n]) => n.startsWith("probability_"))) {
    const bar = put("div", undefined, out, "share");
    put("span", name.slice(12), bar);
    put("i", undefined, put("div", undefined, bar)).style.width = `${100 * share}%`;
    put("span", `${(100 * share).toFixed(1)}%`, bar, "n");
  }
  for (const remark of said.remarks || []) put("p", remark, out, "error");
}

function quantile(buckets, share) {
  const all = buckets.at(-1)[1];
  let below = 0, before = 0;
  for (const [bound, count] of buckets) {
    if (all > 0 && count >= share * all)
      return isFinite(bound) ? below + (bound - below) * (share * all - before) / (count - before) : below;
    [below, before] = [bound, count];
  }
  return NaN;
}

async function look() {
  const text = await (await ask("metrics", {headers: headers()})).text(), now = {at: performance.now()};
  for (const [, name, value] of text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)) now[name] = Number(value);
  if (seen) {
    const gone = (now.at - seen.at) / 1000, per = n => (now[n] - (seen[n] || 0)) / gone;
    const names = Object.keys(now).filter(n => n.startsWith("mlopt_request_seconds_bucket"));
    const buckets = names.map(n => [n.includes("Inf") ? Infinity : Number(n.match(/"(.*)"/)[1]), now[n] - seen[n]]);
    const rate = per("mlopt_request_seconds_count"), calls = per("mlopt_call_rows_count");
    const p99 = quantile(buckets, .99);
    $("rate").textContent = rate.toFixed(rate < 10 ? 1 : 0);
    $("rows").textContent = calls ? (per("mlopt_call_rows_sum") / calls).toFixed(1) : "–";
    $("p50").textContent = short(quantile(buckets, .5));
    $("p99").textContent = short(p99);
    $("open").textContent = `${now.mlopt_open_rows} of ${now.mlopt_credit_rows}`;
    $("refused").textContent = now['mlopt_requests_total{status="503"}'] || 0;
    rates = [...rates.slice(-59), rate]; waits = [...waits.slice(-59), p99 || 0];
    line(rates, "rates"); line(waits, "waits");
  }
  seen = now;
}

$("row").addEventListener("submit", event => predict(event).catch(
  error => { $("answer").replaceChildren(); put("p", error.message, $("answer"), "error"); }));
$("login").addEventListener("submit", event => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("token", token);
  start().catch(error => { $("lead").textContent = error.message; });
});
start().catch(error => { $("lead").textContent = error.message; });
look().catch(() => {});
setInterval(() => look().catch(() => {}), 1000);
