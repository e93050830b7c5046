// Appended to a page under test: uses it as a person would and writes what it saw into the document.
(function () {
  const out = document.createElement("pre");
  out.id = "probe";
  const chart = document.querySelector(".chart"), select = document.getElementById("view");
  const svg = () => chart.querySelector("svg");
  const point = (x) => {
    const box = svg().getBoundingClientRect(), area = svg().querySelector('rect[fill="transparent"]');
    const at = { clientX: box.left + box.width * x, clientY: box.top + 50, bubbles: true };
    area.dispatchEvent(new PointerEvent("pointermove", at));
    return Array.from(svg().querySelectorAll(".tip text")).map((t) => t.textContent).join(" | ");
  };
  const lines = [point(0.6)];
  lines.push("circles " + svg().querySelectorAll("circle.point").length);
  const other = document.querySelectorAll(".chart")[1], before = other && other.innerHTML;
  select.value = "1";
  select.dispatchEvent(new Event("change"));
  lines.push(point(0.3));
  lines.push("options " + Array.from(select.options).map((o) => o.textContent).join(" ; "));
  const seen = [], pick = (id, value) => { const m = document.getElementById(id); m.value = value; m.dispatchEvent(new Event("change")); };
  for (const kind of ["smooth", "isotonic"]) for (const band of ["confidence", "consistency", "simultaneous"]) {
    pick("kind", kind); pick("band", band);
    const shown = Array.from(document.querySelectorAll("[data-band]")).filter((n) => !n.hidden).map((n) => n.dataset.band).join();
    const drawn = svg().querySelectorAll("polygon.band").length && svg().querySelectorAll("polyline.smooth").length && svg().querySelectorAll("line.whisker").length >= 5;
    seen.push([svg().innerHTML, shown === band && drawn && document.getElementById("missing").hidden]);
  }
  lines.push("bands " + new Set(seen.map((s) => s[0])).size + " " + seen.every((s) => s[1]) + " " + document.getElementById("curve-name").textContent);
  document.getElementById("theme").click();
  lines.push("dark " + document.documentElement.classList.contains("dark"));
  const view = svg().viewBox.baseVal;
  const outside = (b) => b.x < 0 || b.y < 0 || b.x + b.width > view.width || b.y + b.height > view.height;
  const upright = Array.from(svg().querySelectorAll("text")).filter((t) => !t.closest(".tip") && !t.getAttribute("transform"));
  lines.push("clipped " + upright.filter((t) => outside(t.getBBox())).map((t) => t.textContent).join(","));
  lines.push("other " + (!other ? "none" : other.innerHTML === before || !other.querySelector("circle.point") ? "as it was" : "drawn anew"));
  out.textContent = lines.join("\n");
  document.body.appendChild(out);
})();
