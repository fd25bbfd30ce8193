// Without this script the page is complete; with it, cards and pods find each other.
"use strict";
(() => {
  const details = document.getElementById("details");
  const cards = [...document.querySelectorAll("table.cards .card")];
  const rows = [...document.querySelectorAll("tr[data-cards]")];
  const hint = details.textContent;

  const clear = () => {
    document.querySelectorAll(".marked").forEach((one) => one.classList.remove("marked"));
    details.textContent = hint;
  };
  const mark = (ones) => ones.forEach((one) => one.classList.add("marked"));
  const of = (row) => row.dataset.cards.split(" ").filter(Boolean);
  const show = (card) => {
    clear();
    details.textContent = card.getAttribute("aria-label");
    mark(rows.filter((row) => of(row).includes(card.id)));
  };

  for (const card of cards) {
    card.addEventListener("focus", () => show(card));
    card.addEventListener("pointerenter", () => show(card));
    card.addEventListener("pointerleave", clear);
    card.addEventListener("blur", clear);
  }
  for (const row of rows) {
    const shown = () => { clear(); mark(of(row).map((id) => document.getElementById(id))); };
    row.addEventListener("focusin", shown);
    row.addEventListener("pointerenter", shown);
    row.addEventListener("focusout", clear);
    row.addEventListener("pointerleave", clear);
  }

  // One stop of the Tab key for each picture; arrows inside it.
  const steps = {
    ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
  };
  for (const picture of document.querySelectorAll("table.cards")) {
    const grid = [...picture.rows].map((row) => [...row.querySelectorAll(".card")]);
    picture.addEventListener("keydown", (event) => {
      const y = grid.findIndex((row) => row.includes(event.target));
      if (y < 0) { return; }
      const x = grid[y].indexOf(event.target);
      let next;
      if (event.key === "Home") { next = grid[y][0]; }
      else if (event.key === "End") { next = grid[y][grid[y].length - 1]; }
      else if (event.key in steps) {
        const [dy, dx] = steps[event.key];
        const row = grid[y + dy];
        next = row && row[dx ? x + dx : Math.min(x, row.length - 1)];
      } else { return; }
      event.preventDefault();
      if (next) {
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    });
  }

  const filter = document.getElementById("filter");
  if (filter) {
    const found = document.getElementById("found");
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        count += row.hidden ? 0 : 1;
      }
      found.textContent = wanted ? `${count} of ${rows.length} rows` : "";
    });
  }
})();
