// What is wrong with a page in a frame: what sticks out, is cut off, is too narrow to read, or has too little contrast.
const found = {};
function luminance(colour) {
  const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function backgroundOf(view, node) {
  for (let at = node; at; at = at.parentElement) {
    const colour = view.getComputedStyle(at).backgroundColor;
    if (!/rgba\(.*, 0\)|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
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
    if (box.left < -0.5 || box.right > width + 0.5) wrong.push("sticks out: " + text.slice(0, 40));
    for (let at = node; at; at = at.parentElement) {
      const around = view.getComputedStyle(at), room = at.getBoundingClientRect();
      if (around.overflow !== "visible" && at !== doc.documentElement && box.bottom > room.bottom + 1) wrong.push("cut off: " + text.slice(0, 40));
    }
    if (node.tagName === "TD") {
      cells += 1;
      if (text.length > 3 && box.width < 40) wrong.push("too narrow: " + text.slice(0, 40));
      if (box.height > 6 * parseFloat(style.fontSize) && text.length < 60) wrong.push("a letter a line: " + text.slice(0, 40));
    }
    const [a, b] = [luminance(style.color), luminance(backgroundOf(view, node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) wrong.push("pale: " + text.slice(0, 40));
  }
  found[name] = { cells, wrong: Array.from(new Set(wrong)).slice(0, 12), height: doc.documentElement.scrollHeight };
}
addEventListener("load", () => setTimeout(() => {
  for (const frame of document.querySelectorAll("iframe"))
    for (const light of frame.dataset.name.includes("print") ? ["print"] : ["light", "dark"]) judge(frame, frame.dataset.name + " " + light);
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  document.body.appendChild(out);
}, 500));
