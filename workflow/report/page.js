"use strict";
// Sorts and filters tables and lights up the curves of a cell. The page is whole without it.
(() => {
  const value = (cell) => {
    const text = (cell?.dataset.v ?? cell?.textContent ?? "").trim();
    const found = Number.parseFloat(text.replace(/,/g, ""));
    return { text, number: Number.isNaN(found) ? null : found };
  };
  const compare = (one, other) => {
    if (!one.text || !other.text) return (one.text ? 0 : 1) - (other.text ? 0 : 1);
    if (one.number !== null && other.number !== null) return one.number - other.number;
    return one.text.localeCompare(other.text, "en", { numeric: true });
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const planned = [...body.rows];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "descending", descending: "ascending", ascending: "none" };
        const order = next[head.getAttribute("aria-sort")];
        heads.forEach((one) => one.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order);
        const rows = [...planned];
        if (order !== "none") {
          const sign = order === "ascending" ? 1 : -1;
          const keyed = rows.map((row) => [value(row.cells[column]), row]);
          keyed.sort(([one], [other]) =>
            one.text && other.text ? sign * compare(one, other) : compare(one, other));
          rows.splice(0, rows.length, ...keyed.map(([, row]) => row));
        }
        body.append(...rows);
      });
    });
  }

  for (const form of document.querySelectorAll("[data-filters]")) {
    const table = document.getElementById(form.dataset.filters);
    const words = form.querySelector("input");
    const state = form.querySelector("select");
    const count = form.querySelector("output");
    const rows = [...table.tBodies[0].rows];
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = wanted.every((word) => text.includes(word)) &&
          (!state.value || row.dataset.state.split(" ").includes(state.value));
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      count.textContent = `${shown} of ${rows.length}`;
    };
    words.addEventListener("input", apply);
    state.addEventListener("input", apply);
    form.hidden = false;
    apply();
  }

  let pinned = null;
  const light = (numbers) => {
    document.body.classList.toggle("lit", numbers !== null);
    for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
    for (const number of (numbers ?? "").split(" ").filter(Boolean))
      for (const curve of document.querySelectorAll(`svg .k${number}`)) curve.classList.add("on");
  };
  for (const entry of document.querySelectorAll(".legend [data-k]")) {
    const numbers = entry.dataset.k;
    entry.tabIndex = 0;
    entry.setAttribute("role", "button");
    entry.setAttribute("aria-pressed", "false");
    const pin = () => {
      pinned = pinned === numbers ? null : numbers;
      for (const one of document.querySelectorAll(".legend [data-k]"))
        one.setAttribute("aria-pressed", String(one.dataset.k === pinned));
      light(pinned);
    };
    entry.addEventListener("mouseenter", () => light(numbers));
    entry.addEventListener("mouseleave", () => light(pinned));
    entry.addEventListener("focus", () => light(numbers));
    entry.addEventListener("blur", () => light(pinned));
    entry.addEventListener("click", pin);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pin();
      }
    });
  }
})();
