// Keeps the page current, shows times as ages, and copies commands. Reading works without it.
"use strict";

(() => {
  const FIRST_RETRY_MS = 1000, LONGEST_RETRY_MS = 10000;

  // ---------------------------------------------------------------- ages
  const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  function age(seconds) {
    const ahead = seconds < 0;
    let rest = Math.floor(Math.abs(seconds));
    const parts = [];
    for (const [size, unit] of UNITS) {
      if (rest >= size || parts.length) {
        parts.push(`${Math.floor(rest / size)}${unit}`);
        rest %= size;
        if (parts.length === 2) break;
      }
    }
    const text = (parts[1] || "").startsWith("0") ? parts[0] : parts.join(" ");
    if (!text) return "now";
    return ahead ? `in ${text}` : `${text} ago`;
  }
  function showAges() {
    const now = Date.now();
    for (const each of document.querySelectorAll("time[datetime]")) {
      if (!each.title) each.title = each.textContent;
      const text = age((now - Date.parse(each.dateTime)) / 1000);
      if (each.textContent !== text) each.textContent = text;
    }
  }

  // ---------------------------------------------------------------- live
  const link = document.getElementById("link-state"), where = document.getElementById("where");
  let stream = null, timer = null, retryMs = FIRST_RETRY_MS;

  function said(text, isBad) {
    if (!link) return;
    link.textContent = text;
    link.classList.toggle("bad", isBad);
  }
  function current() { return document.getElementById("main"); }
  // Whether the page is shown: while the services cannot be reached, a page that had content keeps it.
  function show(html) {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    const fresh = parsed.getElementById("main");
    const main = current();
    if (!fresh || !main) return false;
    if (fresh.dataset.fault === "lost" && !main.hasAttribute("data-fault")) {
      said("the stack does not answer, retrying", true);
      return false;
    }
    if (main.hasAttribute("data-fault") && !fresh.hasAttribute("data-fault")) {
      location.reload(); // for the page's own scripts, which a fault's page has not loaded
      return true;
    }
    showTimesOf(fresh);
    Idiomorph.morph(main, fresh, {
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        beforeNodeMorphed: (old) => !(old instanceof Element && old.hasAttribute("data-keep")),
        // What a reader has opened stays open.
        beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement),
      },
    });
    document.title = `${main.dataset.title} – Trainmaster`;
    if (where) where.textContent = where.title = main.dataset.where;
    dress();
    document.dispatchEvent(new CustomEvent("page-changed"));
    return true;
  }
  function showTimesOf(fresh) {
    const now = Date.now();
    for (const each of fresh.querySelectorAll("time[datetime]")) {
      each.title = each.textContent;
      each.textContent = age((now - Date.parse(each.dateTime)) / 1000);
    }
  }
  function stop() {
    if (stream) stream.close();
    stream = null;
    clearTimeout(timer);
  }
  function watch() {
    stop();
    const main = current();
    if (document.hidden || !main || !main.hasAttribute("data-live")) { said("", false); return; }
    const pollS = Number(document.body.dataset.pollS);
    if (pollS > 0) { timer = setTimeout(poll, pollS * 1000); return; }
    stream = new EventSource(location.href);
    stream.addEventListener("open", () => { retryMs = FIRST_RETRY_MS; said("live", false); });
    stream.addEventListener("page", (event) => { if (show(JSON.parse(event.data))) said("live", false); });
    stream.addEventListener("late", () => said("the stack does not answer, retrying", true));
    stream.addEventListener("final", () => { stop(); said("", false); });
    stream.addEventListener("error", () => {
      stop();
      said("connection lost, retrying", true);
      timer = setTimeout(watch, retryMs);
      retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
    });
  }
  async function poll() {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (show(await answer.text())) said("", false);
    } catch {
      said("connection lost, retrying", true);
    }
    watch();
  }

  // ---------------------------------------------------------------- copy, theme
  function dress() {
    for (const each of document.querySelectorAll("button.copy[hidden]")) each.hidden = false;
    showAges();
  }
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("button.copy");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const theme = document.getElementById("theme");
  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  if (theme) {
    theme.hidden = false;
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.addEventListener("click", () => {
      const next = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      theme.textContent = next === "dark" ? "Light" : "Dark";
      try { localStorage.setItem("theme", next); } catch { /* for this page only */ }
      document.dispatchEvent(new CustomEvent("theme-changed"));
    });
  }

  document.addEventListener("visibilitychange", watch);
  document.addEventListener("htmx:afterSettle", () => { dress(); document.dispatchEvent(new CustomEvent("page-changed")); });
  // A part of a page that could not be loaded says why, above what it had before, unless that is enough: `data-quiet`.
  function sayFault(target, text) {
    if (target.hasAttribute("data-quiet")) return;
    const said = document.createElement("div");
    said.className = "notice bad";
    said.dataset.fault = "";
    said.setAttribute("role", "alert");
    said.textContent = text;
    target.querySelector(":scope > [data-fault]")?.remove();
    target.prepend(said);
  }
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (xhr.status < 400) return;
    const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
    // The same part of the page, which says what is wrong with the query, takes the place of the earlier answer.
    event.detail.shouldSwap = xhr.status === 400 && !!target.id && answer.getElementById(target.id) !== null;
    if (event.detail.shouldSwap) return;
    const fault = answer.querySelector(".notice");
    sayFault(target, fault ? fault.textContent.trim() : `The console answered ${xhr.status}.`);
  });
  document.addEventListener("htmx:sendError", (event) => sayFault(event.detail.target, "The console does not answer."));
  document.addEventListener("htmx:pushedIntoHistory", watch);  // the stream is of the new address
  addEventListener("pagehide", stop);
  addEventListener("pageshow", watch);
  setInterval(showAges, 1000);
  dress();
  watch();
})();
