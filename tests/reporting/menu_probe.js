// Appended to a diagram under test: chooses every choice of every menu beside every other, and tells what threw.
(function () {
  const root = document.querySelector(".calibrant-diagram") || document, wrong = [];
  addEventListener("error", (event) => wrong.push(event.message));
  const menus = Array.from(root.querySelectorAll(".menus select"));
  let n = 0;
  function choose(i) {
    if (i === menus.length) {
      n += 1;
      const svg = root.querySelector(".chart svg");
      if (!svg || svg.querySelectorAll("polyline.smooth").length + svg.querySelectorAll("circle.point").length === 0) wrong.push("nothing is drawn: " + menus.map((m) => m.value).join());
      const area = svg && svg.querySelector('rect[fill="transparent"]'), box = svg && svg.getBoundingClientRect();
      if (area) area.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 50, bubbles: true }));
      return;
    }
    for (const option of menus[i].options) {
      if (option.disabled) continue;
      menus[i].value = option.value;
      menus[i].dispatchEvent(new Event("change"));
      choose(i + 1);
    }
  }
  choose(0);
  const save = root.querySelector(".save");
  save.addEventListener("click", (event) => event.preventDefault());
  save.click();
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({ wrong, n, bands: Array.from(root.querySelectorAll("#band option")).filter((o) => !o.disabled).map((o) => o.value), saved: decodeURIComponent(save.href).slice(0, 60) });
  document.body.append(out);
})();
