// Elements of the page whose content is cut off, or that lie over one another although neither contains the other.
() => {
  const faults = [];
  const name = (each) => `${each.tagName.toLowerCase()}${each.id ? "#" + each.id : ""}${typeof each.className === "string" && each.className ? "." + each.className.trim().split(/\s+/).join(".") : ""} "${(each.textContent || "").trim().slice(0, 40)}"`;
  const shown = (each) => {
    if (!each.checkVisibility()) return false;  // as in closed details
    const style = getComputedStyle(each);
    const box = each.getBoundingClientRect();
    return each.checkVisibility() && style.visibility !== "hidden" && style.display !== "none" && box.width > 1 && box.height > 1 && box.right > 0 && box.bottom > 0;
  };
  const scrolls = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (["auto", "scroll"].includes(style.overflowX) || ["auto", "scroll"].includes(style.overflowY)) return true;
    }
    return false;
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) faults.push(`the page is ${document.documentElement.scrollWidth} px wide, the window ${width}`);
  const boxes = [];
  for (const each of document.body.querySelectorAll("*")) {
    if (!shown(each) || each.closest(".skip, svg, canvas, .plot, option, thead") || scrolls(each.parentElement)) continue;
    const box = each.getBoundingClientRect();
    if (box.right > width + 1) faults.push(`beyond the right edge: ${name(each)}`);
    const style = getComputedStyle(each);
    if (["hidden", "clip"].includes(style.overflowX) && each.scrollWidth > each.clientWidth + 1 && style.textOverflow !== "ellipsis" && (each.textContent || "").trim())
      faults.push(`cut off: ${name(each)}`);
    if (style.display !== "inline" && each.matches("section, .card, .tile, button, .button, input, select, textarea, h1, h2, p, dl, table, nav a, figure, .state, .tag")) boxes.push([each, box]);
  }
  for (let first = 0; first < boxes.length && first < 1500; first += 1) {
    for (let second = first + 1; second < boxes.length && second < 1500; second += 1) {
      const [a, one] = boxes[first], [b, other] = boxes[second];
      if (a.contains(b) || b.contains(a)) continue;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 2 && down > 2) faults.push(`overlap: ${name(a)} and ${name(b)}`);
    }
  }
  return faults.slice(0, 20);
}
