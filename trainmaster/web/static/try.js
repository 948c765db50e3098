// Marks the faults in the text, takes dropped files, and keeps what was typed. Checking works without it.
"use strict";

(() => {
  const LINES_MAX = 5000, KEPT = "tried-request";
  const editor = document.getElementById("editor");
  const text = document.getElementById("text");
  const gutter = document.getElementById("gutter");
  const marks = document.getElementById("marks");
  const name = document.getElementById("file-name");
  const form = document.getElementById("request");
  if (!editor || !text || !gutter || !marks || !name || !form) return;

  // ---------------------------------------------------------------- marks
  function faults() {
    const found = new Map();
    for (const each of document.querySelectorAll("#checked li[data-line]")) {
      const line = Number(each.dataset.line);
      if (!found.has(line)) found.set(line, []);
      found.get(line).push({
        column: Number(each.dataset.column), length: Number(each.dataset.length), level: each.dataset.level,
      });
    }
    return found;
  }
  function element(tag, kind, content) {
    const made = document.createElement(tag);
    made.className = kind;
    made.textContent = content;
    return made;
  }
  function draw() {
    const lines = text.value.split("\n"), found = faults();
    const numbers = [], sheet = [];
    const count = Math.min(lines.length, LINES_MAX);
    for (let at = 1; at <= count; at += 1) {
      const here = found.get(at);
      const level = here && (here.some((each) => each.level === "error") ? "error" : "warning");
      numbers.push(here ? element("span", level, `${level === "error" ? "✕" : "!"} ${at}\n`) : `${at}\n`);
      sheet.push(...(here ? marked(lines[at - 1], here) : []), "\n");
    }
    if (count < lines.length) numbers.push("…\n");
    gutter.replaceChildren(...numbers);
    marks.replaceChildren(...sheet);
    scroll();
  }
  function marked(line, here) {
    const characters = Array.from(line), parts = [];
    let at = 0;
    for (const each of [...here].sort((one, other) => one.column - other.column)) {
      const start = Math.max(each.column - 1, at), end = Math.max(each.column - 1 + each.length, start);
      parts.push(characters.slice(at, start).join(""));
      if (end > start) parts.push(element("mark", each.level, characters.slice(start, end).join("") || " "));
      at = Math.max(at, end);
    }
    return parts;
  }
  function scroll() {
    gutter.scrollTop = text.scrollTop;
    marks.scrollTop = text.scrollTop;
    marks.scrollLeft = text.scrollLeft;
  }
  function goTo(item) {
    const lines = text.value.split("\n"), line = Number(item.dataset.line), column = Number(item.dataset.column);
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const inLine = Array.from(lines[line - 1] || "");
    const start = before + inLine.slice(0, column - 1).join("").length;
    const end = start + inLine.slice(column - 1, column - 1 + Number(item.dataset.length)).join("").length;
    text.focus();
    text.setSelectionRange(start, end);
    text.scrollTop = Math.max(0, (line - 5) * (text.scrollHeight / Math.max(lines.length, 1)));
  }
  function dress() {
    for (const each of document.querySelectorAll("#checked .goto[hidden]")) {
      each.hidden = false;
      each.nextElementSibling.hidden = true;
    }
    draw();
  }

  // ---------------------------------------------------------------- files, and what was typed
  function check() { text.dispatchEvent(new Event("refill")); }
  function take(file) {
    if (!file) return;
    if (file.size > Number(form.dataset.bytesMax)) {
      text.value = `# ${file.name} has ${file.size} bytes, more than a request may have: ${form.dataset.bytesMax}.\n`;
      draw();
      return;
    }
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      text.value = String(reader.result);
      name.value = file.name;
      keep();
      draw();
      check();
    });
    reader.readAsText(file);
  }
  function keep() {
    try { sessionStorage.setItem(KEPT, JSON.stringify([text.value, name.value])); } catch { /* too large, or not allowed */ }
  }
  function restore() {
    if (text.value || location.search) return;
    try {
      const [kept, file] = JSON.parse(sessionStorage.getItem(KEPT) || '["", ""]');
      if (!kept) return;
      text.value = kept;
      name.value = file;
      check();
    } catch { /* another form of it */ }
  }

  const chosen = document.getElementById("file");
  document.getElementById("choose").hidden = false;
  chosen.addEventListener("change", () => take(chosen.files[0]));
  editor.addEventListener("dragover", (event) => { event.preventDefault(); editor.classList.add("over"); });
  editor.addEventListener("dragleave", () => editor.classList.remove("over"));
  editor.addEventListener("drop", (event) => {
    editor.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  editor.classList.add("drawn");
  text.addEventListener("input", () => { keep(); draw(); });
  text.addEventListener("scroll", scroll);
  name.addEventListener("change", check);
  document.addEventListener("htmx:afterSettle", dress);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest(".goto");
    if (button) goTo(button.closest("li"));
  });
  dress();
  document.addEventListener("DOMContentLoaded", () => {  // htmx listens from then on
    restore();
    if (text.value && location.search) check();
  });
})();
