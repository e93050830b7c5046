// What is wrong with a page in a frame: what sticks out, is cut off, is too narrow to read, or has too little contrast.
const found = {};
// Red, green, blue and opacity of what a computed style says: "rgb(…)", "rgba(…)" or "color(srgb …)".
function parts(colour) {
  const v = colour.match(/[0-9.]+(e-?[0-9]+)?/g).map(Number), unit = colour.startsWith("color(") ? 1 : 255;
  return [v[0] / unit, v[1] / unit, v[2] / unit, v.length > 3 ? v[3] : 1];
}
function over(front, back) {
  return [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
}
function luminance(colour) {
  const [r, g, b] = colour.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function backgroundOf(view, node) {
  const layers = [];
  for (let at = node; at; at = at.parentElement) layers.push(parts(view.getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((back, front) => over(front, back), [1, 1, 1, 1]);
}
function judge(frame, name) {
  const doc = frame.contentDocument, view = frame.contentWindow, wrong = [];
  if (name.includes("dark")) doc.documentElement.classList.add("dark"); else doc.documentElement.classList.remove("dark");
  for (const fold of doc.querySelectorAll("details")) fold.open = true;
  const width = doc.documentElement.clientWidth;
  if (doc.documentElement.scrollWidth > width) wrong.push("the page scrolls sideways by " + (doc.documentElement.scrollWidth - width));
  let cells = 0;
  for (const node of doc.body.querySelectorAll("h1, h2, p, td, th, b, span, small, label, summary, select, button, figcaption")) {
    const style = view.getComputedStyle(node), box = node.getBoundingClientRect(), text = node.textContent.trim();
    if (!text || style.display === "none" || !box.width || node.closest("thead") && style.clipPath !== "none") continue;
    if (node.closest("thead") && view.getComputedStyle(node.closest("thead")).clipPath !== "none") continue;
    const rolls = node.closest(".calibrant-shown") && node.closest("table");  // wide tables scroll within themselves
    if (!rolls && (box.left < -0.5 || box.right > width + 0.5)) wrong.push("sticks out: " + text.slice(0, 40));
    for (let at = node; at; at = at.parentElement) {
      const around = view.getComputedStyle(at), room = at.getBoundingClientRect();
      if (around.overflowY !== "auto" && around.overflow !== "visible" && at !== doc.documentElement && box.bottom > room.bottom + 1) wrong.push("cut off: " + text.slice(0, 40));
    }
    if (node.tagName === "TD") {
      cells += 1;
      if (text.length > 3 && box.width < 40) wrong.push("too narrow: " + text.slice(0, 40));
      if (box.height > 6 * parseFloat(style.fontSize) && text.length < 60) wrong.push("a letter a line: " + text.slice(0, 40));
    }
    const back = backgroundOf(view, node);
    let opacity = 1;
    for (let at = node; at; at = at.parentElement) opacity *= Number(view.getComputedStyle(at).opacity);
    const ink = parts(style.color);
    const [a, b] = [luminance(over([...ink.slice(0, 3), ink[3] * opacity], back)), luminance(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) wrong.push("pale: " + text.slice(0, 40));
  }
  const host = Array.from(doc.querySelectorAll("#host *")).map((node) => {
    const style = view.getComputedStyle(node), names = ["color", "fontSize", "fontWeight", "display", "padding", "margin", "border", "opacity", "backgroundColor", "boxShadow", "fill", "whiteSpace"];
    return node.tagName + ": " + names.map((n) => style[n]).join("; ");
  });
  found[name] = { host, cells, wrong: Array.from(new Set(wrong)).slice(0, 12), height: doc.documentElement.scrollHeight };
}
addEventListener("load", () => setTimeout(() => {
  for (const frame of document.querySelectorAll("iframe"))
    for (const light of frame.dataset.name.includes("print") ? ["print"] : ["light", "dark"]) judge(frame, frame.dataset.name + " " + light);
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  document.body.appendChild(out);
}, 500));
