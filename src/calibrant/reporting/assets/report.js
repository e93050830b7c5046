"use strict";
(function () {
  // One diagram, or several of the same views side by side: charts[i].views, drawn in the i-th element ".chart".
  // A page of its own, or a part of another page, beside which there may be more of its kind.
  const part = document.currentScript.closest(".calibrant-diagram"), root = part || document.documentElement;
  const find = (id) => root.querySelector("#" + id);
  const data = JSON.parse(find("data").textContent);
  const select = find("view"), kinds = find("kind"), bands = find("band"), rows = find("rows");
  if (!part && window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches) root.classList.add("dark");
  if (!part) find("theme").addEventListener("click", () => root.classList.toggle("dark"));

  // Geometry: a square plot, and a strip for the numbers of rows below it.
  const L = 62, T = 12, S = 520, GAP = 40, STRIP = 90, W = L + S + 24, H = T + S + GAP + STRIP + 52;
  const px = (v) => L + S * v, py = (v) => T + S * (1 - v);
  const NS = "http://www.w3.org/2000/svg";
  const percent = (v) => (v === null ? "–" : (100 * v).toFixed(1) + " %");

  // Numbers come as whole multiples of a unit, and bins column by column.
  const scaled = (v) => Array.isArray(v) ? v.map(scaled) : typeof v === "number" ? v * data.unit : v && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, scaled(x)])) : v;
  function unpacked(view) {
    const { bins, name, x, y, ...curves } = view, b = scaled({ ...bins, n: null });
    const bin = (i) => ({ a: b.a[i], b: b.b[i], s: b.s[i], o: b.o[i], n: bins.n[i], bands: Object.fromEntries(Object.entries(b.bands).map(([k, [low, high]]) => [k, [low[i], high[i]]])) });
    return { name, x, y, ...scaled(curves), bins: bins.n.map((_, i) => bin(i)) };
  }
  const heard = root.querySelector(".heard");  // what the arrow keys read, aloud
  const charts = Array.from(root.querySelectorAll(".chart")), seen = data.charts.map(() => new Map());
  function viewOf(c, i) {
    if (!seen[c].has(i)) seen[c].set(i, unpacked(data.charts[c].views[i]));
    return seen[c].get(i);
  }

  function make(parent, tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  // Runs of points without a gap (null).
  function runs(xs, ...ys) {
    const out = []; let run = [];
    xs.forEach((x, i) => {
      if (ys.every((y) => y[i] !== null)) run.push(i);
      else if (run.length) { out.push(run); run = []; }
    });
    if (run.length) out.push(run);
    return out;
  }

  function axes(svg, view, top) {
    for (let i = 0; i <= 5; i++) {
      const v = i / 5, name = v.toFixed(1);
      make(svg, "line", { class: "grid", x1: px(v), x2: px(v), y1: py(1), y2: py(0) });
      make(svg, "line", { class: "grid", x1: px(0), x2: px(1), y1: py(v), y2: py(v) });
      make(svg, "text", { class: "tick", x: px(v), y: py(0) + 18, "text-anchor": "middle" }, name);
      make(svg, "text", { class: "tick", x: px(0) - 8, y: py(v) + 4, "text-anchor": "end" }, name);
      make(svg, "text", { class: "tick", x: px(v), y: top + STRIP + 18, "text-anchor": "middle" }, name);
    }
    make(svg, "rect", { class: "axis", x: px(0), y: py(1), width: S, height: S });
    make(svg, "line", { class: "axis", x1: px(0), x2: px(1), y1: top + STRIP, y2: top + STRIP });
    make(svg, "text", { x: px(0.5), y: H - 8, "text-anchor": "middle" }, shorten([view.x], 70)[0]);
    make(svg, "text", { "text-anchor": "middle", transform: `translate(16 ${py(0.5)}) rotate(-90)` }, view.y);
    make(svg, "text", { "text-anchor": "middle", transform: `translate(16 ${top + STRIP / 2}) rotate(-90)` }, "Rows");
  }

  // Short names that still differ, by the rule of data/printing.py.
  function cut(text, width) {
    if (text.length <= width) return text;
    const most = Math.max(width - 1, 0), tail = Math.floor(most / 2);
    return text.slice(0, most - tail) + "…" + text.slice(text.length - tail);
  }
  function shorten(names, width) {
    const out = names.map((name) => cut(name, width)), longest = Math.max(0, ...names.map((name) => name.length));
    const count = (texts) => new Set(texts).size;
    for (;; width++) {
      const groups = new Map();
      out.forEach((short, i) => groups.set(short, [...(groups.get(short) || []), i]));
      const alike = [...groups.values()].filter((group) => count(group.map((i) => names[i])) > 1);
      if (!alike.length) return out;
      for (const group of alike) {
        const texts = group.map((i) => names[i]);
        let start = 0;
        while (start < texts[0].length && texts.every((text) => text[start] === texts[0][start])) start++;
        const ends = texts.map((text) => "…" + cut(text.slice(Math.max(0, Math.min(start, text.length - width + 1))), width - 1));
        const told = start > 0 && width > 1 && width < longest && count(ends) === count(texts);
        group.forEach((i, k) => { out[i] = told ? ends[k] : cut(names[i], width + 1); });
      }
    }
  }
  // End of short names.

  function strip(svg, view, top) {
    const most = Math.max(1, ...view.bins.map((b) => b.n)), log = rows.value === "log";
    const part = (n) => (log ? Math.log10(1 + n) / Math.log10(1 + most) : n / most);
    make(svg, "text", { class: "tick", x: px(0) - 8, y: top + 10, "text-anchor": "end" }, compact(most));
    make(svg, "text", { class: "tick", x: px(0) - 8, y: top + STRIP + 4, "text-anchor": "end" }, "0");
    for (const b of view.bins) {
      const h = Math.max(1, STRIP * part(b.n));
      make(svg, "rect", { class: "count", x: px(b.a) + 0.5, width: Math.max(1, S * (b.b - b.a) - 1), y: top + STRIP - h, height: h });
    }
  }

  const compact = (n) => (n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? (n / 1e3).toFixed(0) + "k" : String(Math.round(n)));

  // The curve and band that the menus ask for; a view without them falls back to what it has.
  function chosen(view) {
    const curve = view[kinds.value] || view.smooth || view.isotonic;
    const none = curve.s.map(() => null);
    const band = curve.bands[bands.value];
    const drawn = (curve.drawn && curve.drawn[bands.value]) || (band ? [curve.s, ...band] : [[], [], []]);
    return { s: curve.s, o: curve.o, line: curve.line || [curve.s, curve.o], band: band || [none, none], drawn, isotonic: curve === view.isotonic, banded: Boolean(band) };
  }

  function curves(svg, view) {
    const c = chosen(view), [at, low, high] = c.drawn, [x, y] = c.line;
    for (const run of runs(at, low, high)) {
      const up = run.map((i) => `${px(at[i])},${py(high[i])}`), down = run.slice().reverse().map((i) => `${px(at[i])},${py(low[i])}`);
      make(svg, "polygon", { class: "band", points: up.concat(down).join(" ") });
    }
    make(svg, "line", { class: "reference", x1: px(0), y1: py(0), x2: px(1), y2: py(1) });
    for (const run of runs(x, y)) make(svg, "polyline", { class: "smooth", points: run.map((i) => `${px(x[i])},${py(y[i])}`).join(" ") });
    const own = view.values && !c.isotonic ? view.values : { s: [], bands: {} };
    own.s.forEach((s, i) => {
      const [low, high] = own.bands[bands.value] || [[], []], d = 6;
      if (low[i] !== null && low[i] !== undefined) make(svg, "line", { class: "own", x1: px(s), x2: px(s), y1: py(low[i]), y2: py(high[i]) });
      make(svg, "path", { class: "own", d: `M${px(s)} ${py(own.o[i]) - d}l${d} ${d}l${-d} ${d}l${-d} ${-d}z` });
    });
    const total = view.bins.reduce((sum, b) => sum + b.n, 0);
    for (const b of view.bins) {
      if (b.o === null) continue;
      const [low, high] = b.bands[bands.value] || [null, null];
      const few = b.n < 10 ? " few" : "";
      if (low !== null) make(svg, "line", { class: "whisker" + few, x1: px(b.s), x2: px(b.s), y1: py(low), y2: py(high) });
      make(svg, "circle", { class: "point" + few, cx: px(b.s), cy: py(b.o), r: 3 + 9 * Math.sqrt(b.n / total) });
    }
  }

  const bandName = () => (bands.value === "consistency" ? "if calibrated" : "interval");

  function hover(chart, svg, view) {
    const cursor = make(svg, "line", { class: "cursor", y1: py(1), y2: py(0), visibility: "hidden" });
    const dot = make(svg, "circle", { class: "focus", r: 5, visibility: "hidden" });
    const box = make(svg, "g", { visibility: "hidden", class: "tip" });
    make(box, "rect", { class: "box", width: 232, height: 104, rx: 6 });
    const lines = [0, 1, 2, 3, 4].map((i) => make(box, "text", { x: 10, y: 20 + 19 * i }));
    const area = make(svg, "rect", { x: px(0), y: py(1), width: S, height: S + GAP + STRIP, fill: "transparent" });
    let at = null;
    function show(score) {
      at = Math.min(1, Math.max(0, score));
      const c = chosen(view), [low, high] = c.band;
      let best = -1;
      c.s.forEach((s, i) => { if (best < 0 || Math.abs(s - at) < Math.abs(c.s[best] - at)) best = i; });
      const near = best >= 0 && Math.abs(c.s[best] - at) < 0.02 ? best : -1;
      const o = near < 0 ? null : c.o[near];
      const bin = view.bins.find((b) => at <= b.b && (at > b.a || (at === 0 && b.a === 0)));
      lines[0].textContent = "score " + at.toFixed(3);
      lines[1].textContent = o === null ? "no data here" : "observed " + percent(o);
      lines[2].textContent = near >= 0 && low[near] !== null ? `${bandName()} ${percent(low[near])} – ${percent(high[near])}` : "";
      lines[3].textContent = bin ? `bin ${bin.a.toFixed(2)}–${bin.b.toFixed(2)}: ${percent(bin.o)}, ${Math.round(bin.n).toLocaleString("en")} rows` : "no rows in this bin";
      lines[4].textContent = bin ? `bin ${bandName()} ${(bin.bands[bands.value] || [null, null]).map(percent).join(" – ")}` : "";
      cursor.setAttribute("x1", px(at)); cursor.setAttribute("x2", px(at));
      if (o !== null) { dot.setAttribute("cx", px(c.s[near])); dot.setAttribute("cy", py(o)); }
      box.setAttribute("transform", `translate(${at > 0.55 ? px(at) - 244 : px(at) + 12} ${py(at > 0.55 ? 0.98 : 0.24)})`);
      for (const node of [cursor, box]) node.setAttribute("visibility", "visible");
      dot.setAttribute("visibility", o === null ? "hidden" : "visible");
    }
    function hide() { for (const node of [cursor, box, dot]) node.setAttribute("visibility", "hidden"); }
    area.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      show(((event.clientX - frame.left) * W / frame.width - L) / S);
    });
    area.addEventListener("pointerleave", hide);
    chart.onkeydown = (event) => {
      const step = { ArrowRight: 0.01, ArrowLeft: -0.01 }[event.key];
      if (step) { show(at === null ? 0.5 : at + step); heard.textContent = lines.map((line) => line.textContent).filter(Boolean).join(", "); event.preventDefault(); } else if (event.key === "Escape") hide();
    };
  }

  function draw(chart, view) {
    chart.textContent = "";
    const svg = make(chart, "svg", { viewBox: `0 0 ${W} ${H}` });
    const top = T + S + GAP;
    axes(svg, view, top);
    strip(svg, view, top);
    curves(svg, view);
    hover(chart, svg, view);
  }

  const views = data.charts[0].views;
  const banded = (view, band) => [view.smooth, view.isotonic, view.bins].some((one) => one && one.bands[band]);
  const notes = Array.from(root.querySelectorAll("[data-band]"));
  function drawAll() {
    charts.forEach((chart, c) => draw(chart, viewOf(c, Number(select.value))));
    const shown = charts.map((_, c) => chosen(viewOf(c, Number(select.value))));
    const asked = kinds.value === "isotonic", banded = shown.every((c) => c.banded);
    find("curve-name").textContent = shown.every((c) => c.isotonic) ? "isotonic (CORP) curve" : "smooth curve";
    find("bin-key").hidden = !charts.some((_, c) => viewOf(c, Number(select.value)).bins.some((b) => b.o !== null));
    find("own-key").hidden = !charts.some((_, c) => { const v = viewOf(c, Number(select.value)); return v.values && v.values.s.length && !shown[c].isotonic; });
    find("band-key").hidden = !shown.some((c) => c.banded);
    for (const note of notes) note.hidden = note.dataset.band !== bands.value;
    find("missing").hidden = banded && shown.every((c) => c.isotonic === asked);
  }
  if (!views.length) { root.querySelector(".diagram").hidden = true; return; }
  views.forEach((view, i) => {
    const option = document.createElement("option");
    option.value = i; option.textContent = view.name;
    select.appendChild(option);
  });
  if (views.length === 1) find("chooser").hidden = true;
  for (const chart of charts) chart.tabIndex = 0;
  // What no view has cannot be chosen.
  const every = data.charts.flatMap((chart) => chart.views);
  for (const option of kinds.options) option.disabled = !every.some((view) => view[option.value]);
  for (const option of bands.options) option.disabled = !every.some((view) => banded(view, option.value));
  for (const menu of [kinds, bands]) {
    if (menu.selectedOptions[0].disabled) menu.value = Array.from(menu.options).find((option) => !option.disabled).value;
  }
  for (const menu of [select, kinds, bands, rows]) menu.addEventListener("change", drawAll);
  // The picture as a file of its own: with the colours that it has here.
  const save = root.querySelector(".save");
  if (save) save.href = "#";
  if (save) save.addEventListener("click", () => {
    const svg = charts[0].querySelector("svg"), copy = svg.cloneNode(true), nodes = copy.querySelectorAll("*");
    const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "visibility"];
    svg.querySelectorAll("*").forEach((node, i) => { const style = getComputedStyle(node); for (const name of kept) nodes[i].style.setProperty(name, style.getPropertyValue(name)); });
    copy.setAttribute("xmlns", NS); copy.setAttribute("width", W); copy.setAttribute("height", H);
    const ground = part ? "Canvas" : getComputedStyle(document.body).backgroundColor;
    copy.style.background = ground;
    save.href = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
  });
  // Paper has no folds.
  addEventListener("beforeprint", () => { for (const fold of root.querySelectorAll("details")) fold.open = true; });
  drawAll();
})();
