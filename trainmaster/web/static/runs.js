// Keeps the address of a filtered list short. Filtering works without it.
"use strict";

(() => {
  document.addEventListener("htmx:configRequest", (event) => {
    if (!(event.target instanceof Element) || event.target.id !== "filters") return;
    const values = event.detail.formData;
    for (const name of new Set(values.keys())) {
      const given = values.getAll(name).filter((each) => each !== "");
      values.delete(name);
      for (const each of given) values.append(name, each);
    }
  });
})();
