// Shows in the table only the trials that a brush on the parallel axes selects.
"use strict";

(() => {
  let names = null;

  function show() {
    const rows = [...document.querySelectorAll("#trials tr[data-trial]")];
    const chosen = names && new Set(names);
    for (const row of rows) row.hidden = Boolean(chosen) && !chosen.has(row.dataset.trial);
    const output = document.getElementById("brushed");
    if (output) output.textContent = chosen ? `Selected: ${chosen.size} ${chosen.size === 1 ? "trial" : "trials"}.` : "";
  }
  document.addEventListener("chart-brushed", (event) => { names = event.detail.names; show(); });
  document.addEventListener("page-changed", show);
})();
