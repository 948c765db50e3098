// Follows the log of a run: keeps the newest line in view, and lines that the page no longer has, up to a limit.
"use strict";

(() => {
  const LINES_MAX = 2000, NEAR_END_PX = 40;
  const box = document.getElementById("log-box"), follow = document.getElementById("log-follow");
  const earlier = document.getElementById("log-earlier"), lines = document.getElementById("log-lines");
  if (!box || !earlier || !lines || !follow) return;
  const isEnd = !new URLSearchParams(location.search).get("before");
  const checkbox = follow.querySelector("input");
  let wasPresent = new Set(), last = 0;

  function toEnd() { if (checkbox.checked && isEnd) box.scrollTop = box.scrollHeight; }
  function marker() {
    const line = document.createElement("li");
    line.className = "gap";
    line.textContent = "… lines that came too fast are left out here; the link above the log shows them …";
    return line;
  }
  function keep(removed) {
    const gone = removed.filter((each) => each.id && !document.getElementById(each.id));
    earlier.append(...gone);
    if (wasPresent.size && ![...lines.children].some((each) => wasPresent.has(each.id))) earlier.append(marker());
    while (earlier.children.length > LINES_MAX - lines.children.length) earlier.firstElementChild.remove();
  }
  new MutationObserver((changes) => {
    const removed = changes.flatMap((change) => [...change.removedNodes]).filter((each) => each instanceof Element);
    if (removed.length) keep(removed);
    wasPresent = new Set([...lines.children].map((each) => each.id));
    toEnd();
  }).observe(lines, { childList: true });

  function offer() {
    follow.hidden = !isEnd || !document.getElementById("main").hasAttribute("data-live");
  }
  offer();
  document.addEventListener("page-changed", offer);
  if (!isEnd) checkbox.checked = false;
  wasPresent = new Set([...lines.children].map((each) => each.id));
  checkbox.addEventListener("change", toEnd);
  // Submitted at once: the next live update would undo a choice that waits for the button.
  document.getElementById("log-replica").addEventListener("change", (event) => event.target.form.requestSubmit());
  box.addEventListener("scroll", () => {
    if (follow.hidden) return;
    const isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    if (!isNearEnd && checkbox.checked && box.scrollTop < last) checkbox.checked = false;
    last = box.scrollTop;
  });
  if (isEnd) box.scrollTop = box.scrollHeight;
  last = box.scrollTop;
})();
