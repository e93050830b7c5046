// Tables get a box of their own to scroll in, which the keyboard reaches.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table:not(.scrolls table)")) {
    if (table.tHead && !table.tHead.textContent.trim()) table.tHead.hidden = true;
    if (table.closest(".scrolls, .output iframe")) continue;
    const inside = table.closest(".pst-scrollable-table-container");
    const box = inside || document.createElement("div");
    if (!inside) { table.replaceWith(box); box.append(table); }
    box.classList.add("scrolls");
    if (box.scrollWidth > box.clientWidth) { box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", "table"); }
  }
});
