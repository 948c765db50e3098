// Draws the figures of a page from the JSON beside them. Every figure has its numbers in a table as well.
//
//   script type="application/json" id="curves-data": the JSON
//   figure class="chart" id="curves" data-keep data-chart="lines" data-from="curves-data": a figcaption, and
//     div class="plot" role="img" aria-label="Loss of each replica"
// The kinds and their JSON; what has ? may be absent:
//   lines     {x, y, yScale?: "log", series: [{name, points: [[x, y], …], best?, tone?, dash?}]}
//   bars      {value, items: [[name, number], …], max?}
//   parallel  {axes: [{name, scale: "linear" | "log" | "reverse_log", low, high} | {name, values: […]}],
//              lines: [{name, values: [number, text or null, …], best?, tone?, dash?}]}
// `tone` colours from 0 (worst) to 1 (best), null is grey; without it a series has a colour of its own.
// A brush on an axis of `parallel` sends the figure a `chart-brushed` event: detail.names, null without a brush.
"use strict";

(() => {
  const NARROW_PX = 620, ROW_PX = 78, AXIS_PX = 88, BAR_PX = 30, MARKS_UP_TO = 40, TIP_LINES = 10, LABEL_CHARS = 24;
  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow", "emptyCircle"];
  const drawn = new Map();  // from a figure to what draws it

  // ---------------------------------------------------------------- words and colours
  function shown(value) {
    if (typeof value !== "number") return cut(String(value ?? ""));
    if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
    return value.toPrecision(4).replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1").replace("e+", "e");
  }
  function cut(text, most = LABEL_CHARS) { return text.length > most ? `${text.slice(0, most - 1)}…` : text; }
  // A tooltip on a canvas reads {style|text} as markup: a word joiner after the brace prevents that.
  function tip(lines) { return lines.join("\n").replaceAll("{", "{\u2060"); }
  function inks() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      ink: of("ink"), soft: of("soft"), line: of("line"), card: of("card"), best: of("chart-best"), none: of("chart-none"),
      ramp: [of("chart-low"), of("chart-high")], series: [1, 2, 3, 4, 5, 6, 7, 8].map((each) => of(`chart-${each}`)),
      font: getComputedStyle(document.body).fontFamily, px: Math.round(parseFloat(style.fontSize) * 0.8),
    };
  }
  function between([from, to], place) {
    const part = (hex, at) => parseInt(hex.slice(at, at + 2), 16);
    const mixed = [1, 3, 5].map((at) => Math.round(part(from, at) + (part(to, at) - part(from, at)) * place));
    return `rgb(${mixed.join(",")})`;
  }
  function colour(each, place, ink) {
    if (each.best) return ink.best;
    if (each.tone === undefined) return ink.series[place % ink.series.length];
    return each.tone === null ? ink.none : between(ink.ramp, each.tone);
  }
  function stroke(each, place, ink, many) {
    const width = each.best ? 3.2 : many ? 1.2 : 2;
    return { color: colour(each, place, ink), width, type: each.dash ? "dashed" : "solid", opacity: each.best || !many ? 1 : 0.8 };
  }

  // ---------------------------------------------------------------- parts of options
  function base(ink, tooltip) {
    return {
      animation: false, backgroundColor: "transparent", textStyle: { color: ink.ink, fontFamily: ink.font, fontSize: ink.px },
      tooltip: {
        renderMode: "richText", confine: true, backgroundColor: ink.card, borderColor: ink.line,
        textStyle: { color: ink.ink, fontFamily: ink.font, fontSize: ink.px }, axisPointer: { lineStyle: { color: ink.soft } },
        ...tooltip,
      },
    };
  }
  function axis(ink, { axisLabel, nameTextStyle, ...more }) {
    return {
      axisLine: { show: true, lineStyle: { color: ink.soft } }, axisTick: { show: false }, splitLine: { lineStyle: { color: ink.line } },
      axisLabel: { color: ink.soft, fontSize: ink.px, hideOverlap: true, ...axisLabel },
      nameTextStyle: { color: ink.soft, fontSize: ink.px, ...nameTextStyle }, ...more,
    };
  }

  // ---------------------------------------------------------------- kinds
  function lines(data, ink, width) {
    const narrow = width < NARROW_PX, many = data.series.length > 12;
    const said = (params) => {
      const first = params[0]?.value?.[0];
      const near = params.filter((each) => each.value[0] === first);
      near.sort((a, b) => Boolean(data.series[b.seriesIndex]?.best) - Boolean(data.series[a.seriesIndex]?.best));
      const rest = near.length - TIP_LINES;
      return tip([
        `${cut(data.x)} ${shown(first)}`,
        ...near.slice(0, TIP_LINES).map((each) => `${cut(each.seriesName)}: ${shown(each.value[1])}`),
        ...(rest > 0 ? [`and ${rest} more`] : []),
      ]);
    };
    const legend = {
      show: data.series.length > 1, type: "scroll", bottom: 0, left: 0, right: 0, itemWidth: 22, itemHeight: 9,
      data: data.series.filter((each) => !many || each.best).map((each) => each.name),
      textStyle: { color: ink.ink, fontSize: ink.px, lineHeight: 1.5 * ink.px }, formatter: (name) => cut(name), inactiveColor: ink.soft,
      pageIconColor: ink.ink, pageIconInactiveColor: ink.line, pageTextStyle: { color: ink.soft },
    };
    return {
      ...base(ink, { trigger: "axis", formatter: said }), legend,
      grid: { left: 8, right: narrow ? 12 : 24, top: 2.4 * ink.px, bottom: (legend.show ? 4.6 : 2.4) * ink.px, containLabel: true },
      dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: false, preventDefaultMouseMove: false }],
      xAxis: axis(ink, {
        type: "value", min: (range) => Math.min(0, range.min), max: "dataMax", minInterval: 1,
        name: cut(data.x), nameLocation: "middle", nameGap: 2 * ink.px, axisLabel: { formatter: shown },
      }),
      yAxis: axis(ink, {
        type: data.yScale === "log" ? "log" : "value", scale: true, name: cut(data.y, 40), nameTextStyle: { align: "left" },
        axisLabel: { formatter: shown },
      }),
      series: data.series.map((each, place) => ({
        type: "line", id: each.name, name: each.name, data: each.points, z: each.best ? 5 : 3, sampling: "lttb",
        lineStyle: stroke(each, place, ink, many), itemStyle: { color: colour(each, place, ink) },
        symbol: SYMBOLS[each.tone === undefined ? (place + Math.floor(place / SYMBOLS.length)) % SYMBOLS.length : 0],
        symbolSize: each.best ? 8 : many ? 4 : 6, showSymbol: each.points.length <= MARKS_UP_TO,
        emphasis: { focus: "series", lineStyle: { width: stroke(each, place, ink, many).width } }, triggerLineEvent: true,
      })),
    };
  }

  function bars(data, ink, width) {
    const names = data.items.map(([name]) => name), narrow = width < NARROW_PX;
    const category = axis(ink, {
      type: "category", data: names, inverse: true, splitLine: { show: false },
      axisLabel: { color: ink.ink, formatter: (name) => cut(String(name), narrow ? 14 : LABEL_CHARS) },
    });
    const value = axis(ink, { type: "value", min: 0, max: data.max, axisLabel: { formatter: shown } });
    const said = ([each]) => tip([cut(String(each.name), 60), `${data.value}: ${shown(each.value)}`]);
    return {
      ...base(ink, { trigger: "axis", axisPointer: { type: "shadow" }, formatter: said }), grid: { left: 4, right: 44, top: 10, bottom: 6, containLabel: true },
      xAxis: value, yAxis: category,
      series: [{
        type: "bar", id: "bars", data: data.items.map(([, number]) => number), itemStyle: { color: ink.series[0], borderRadius: 3 }, barMaxWidth: 26,
        label: { show: true, position: "right", color: ink.ink, fontSize: ink.px, formatter: ({ value: each }) => shown(each) },
      }],
    };
  }

  // The library has no reversed logarithmic axis: such values are drawn as -log(low + high - value).
  function turned(each) {
    const sum = each.low + each.high;
    return each.scale === "reverse_log" ? { to: (value) => -Math.log(sum - value), from: (value) => sum - Math.exp(-value) } : null;
  }
  function upright(each, place, ink, narrow, chars) {
    const shared = {
      dim: place, z: 10, name: cut(each.name, chars), nameGap: 14,
      nameTextStyle: { color: ink.ink, fontSize: ink.px, fontWeight: "bold", textBorderColor: ink.card, textBorderWidth: 3, ...(narrow ? { align: "left", verticalAlign: "bottom", padding: [0, 0, 8, 0] } : {}) },
      axisLine: { lineStyle: { color: ink.soft } }, axisTick: { lineStyle: { color: ink.soft } },
      areaSelectStyle: { width: 22, color: ink.series[0], borderColor: ink.series[0], opacity: 0.3 },
    };
    const axisLabel = { color: ink.ink, fontSize: ink.px, hideOverlap: true, formatter: shown, textBorderColor: ink.card, textBorderWidth: 3 };
    if (each.values) return { ...shared, type: "category", data: each.values.map(String), axisLabel: { ...axisLabel, formatter: (name) => cut(String(name), 14) } };
    const turn = turned(each);
    const [low, high] = turn ? [each.low, each.high].map(turn.to) : [each.low, each.high];
    const [min, max] = low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
    if (turn) axisLabel.formatter = (value) => shown(turn.from(value));
    return { ...shared, type: each.scale === "log" && min > 0 ? "log" : "value", min, max, axisLabel };
  }
  function valuesOf(data, line) {
    return data.axes.map((each, place) => [each.name, line.values[place]]).filter(([, value]) => value !== null);
  }
  function parallel(data, ink, width) {
    const narrow = isStacked(data, width), many = data.lines.length > 60;
    const chars = narrow ? LABEL_CHARS * 2 : Math.floor(width / data.axes.length / ink.px / 0.65);
    const turns = data.axes.map(turned);
    const value = (each, place) => each === null ? "-" : turns[place] ? turns[place].to(each) : data.axes[place].values ? String(each) : each;
    const said = ({ dataIndex }) => {
      const line = data.lines[dataIndex], given = valuesOf(data, line).map(([name, each]) => `${cut(name)}: ${shown(each)}`);
      return tip([cut(line.name, 40), ...given].slice(0, 2 * TIP_LINES));
    };
    return {
      ...base(ink, { trigger: "item", formatter: said }),
      parallelAxis: data.axes.map((each, place) => upright(each, place, ink, narrow, chars)),
      parallel: narrow
        ? { layout: "vertical", left: 28, right: 28, top: 34, bottom: 24, parallelAxisDefault: { nameLocation: "start" } }
        : { layout: "horizontal", left: 5 * ink.px, right: 6 * ink.px, top: 3 * ink.px, bottom: 20, parallelAxisDefault: { nameLocation: "end" } },
      series: [{
        type: "parallel", id: "lines", smooth: false, inactiveOpacity: 0.06, activeOpacity: 1, emphasis: { lineStyle: { width: 4, opacity: 1 } },
        data: data.lines.map((each, place) => ({
          name: each.name, value: each.values.map(value), lineStyle: stroke({ tone: null, ...each }, place, ink, many),
        })),
      }],
    };
  }
  // Axes lie one below the other where they have no room side by side.
  function isStacked(data, width) { return width < Math.max(NARROW_PX, data.axes.length * AXIS_PX); }
  function heightPx(kind, data, width) {
    if (kind === "parallel" && isStacked(data, width)) return data.axes.length * ROW_PX + 40;
    return kind === "bars" ? data.items.length * BAR_PX + 40 : null;
  }
  const KINDS = { lines, bars, parallel };
  function isEmpty(data) { return !(data.series ?? data.items ?? data.lines ?? []).length; }

  // ---------------------------------------------------------------- figures
  function draw(figure) {
    const source = document.getElementById(figure.dataset.from);
    if (!source || !KINDS[figure.dataset.chart]) return;
    const text = source.textContent;
    let state = drawn.get(figure);
    if (state?.text === text) return;
    const data = JSON.parse(text);
    const plot = figure.querySelector(".plot");
    plot.hidden = isEmpty(data);
    if (plot.hidden) return;
    if (!state) {
      state = begun(figure, plot);
      drawn.set(figure, state);
    }
    Object.assign(state, { text, data });
    paint(state);
  }
  function paint(state) {
    const { figure, plot, chart, data } = state, kind = figure.dataset.chart;
    const height = heightPx(kind, data, plot.clientWidth);
    plot.style.height = height ? `${height}px` : "";
    state.width = plot.clientWidth;
    chart.resize();
    chart.setOption(KINDS[kind](data, inks(), plot.clientWidth), { replaceMerge: ["series"] });
    if (kind === "parallel") brushed(state);  // new lines may be in the brush
  }
  function begun(figure, plot) {
    const state = { figure, plot, chart: echarts.init(plot, null, { renderer: "canvas" }), at: -1 };
    new ResizeObserver(() => {
      if (!plot.clientWidth || !figure.isConnected) return;
      if (plot.clientWidth === state.width) { state.chart.resize(); return; }
      state.chart.clear();
      paint(state);
    }).observe(plot);
    state.output = document.createElement("output");
    state.output.className = figure.dataset.chart === "parallel" ? "soft" : "unseen";
    figure.append(state.output);
    plot.tabIndex = 0;
    plot.addEventListener("keydown", (event) => step(state, event));
    plot.addEventListener("blur", () => {
      for (const type of ["hideTip", "downplay"]) state.chart.dispatchAction({ type });
      state.output.value = "";
    });
    if (figure.dataset.chart === "parallel") state.chart.on("axisareaselected", () => brushed(state));
    figure.querySelector("figcaption")?.append(saving(state));
    return state;
  }
  function brushed(state) {
    const { figure, chart, data } = state, model = chart.getModel();
    let isBrushed = false;
    model.eachComponent("parallelAxis", (each) => { isBrushed ||= each.activeIntervals.length > 0; });
    const places = isBrushed ? model.getSeriesByIndex(0).getRawIndicesByActiveState("active") : [];
    const names = isBrushed ? places.map((place) => data.lines[place].name) : null;
    figure.dispatchEvent(new CustomEvent("chart-brushed", { bubbles: true, detail: { names } }));
  }
  function saving(state) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = "Save as PNG";
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = state.chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: inks().card });
      link.download = `${state.figure.dataset.file || state.figure.id}.png`;
      link.click();
    });
    return button;
  }

  // ---------------------------------------------------------------- keyboard: one point after the other
  function step(state, event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const stops = stopsOf(state);
    state.at = Math.max(0, Math.min(stops.length - 1, state.at + by));
    const { tip: where, text } = stops[state.at];
    state.chart.dispatchAction({ type: "downplay" });
    // A line on parallel axes has no one place for a tooltip: its values are written below.
    state.chart.dispatchAction({ type: state.figure.dataset.chart === "parallel" ? "highlight" : "showTip", ...where });
    state.output.value = text;
  }
  function stopsOf({ figure, chart, data }) {
    if (data.items) return data.items.map(([name, number], place) => ({ tip: { seriesIndex: 0, dataIndex: place }, text: `${name}: ${shown(number)}` }));
    if (data.lines) {
      return data.lines.map((each, place) => ({
        tip: { seriesIndex: 0, dataIndex: place },
        text: `${each.name}: ${valuesOf(data, each).map(([name, value]) => `${name} ${shown(value)}`).join(", ")}`,
      }));
    }
    const places = [...new Set(data.series.flatMap((each) => each.points.map(([x]) => x)))].sort((a, b) => a - b);
    return places.map((x) => {
      const here = data.series.map((each) => [each.name, each.points.find(([at]) => at === x)]).filter(([, point]) => point);
      const [left, top] = chart.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, here[0][1]);
      return { tip: { x: left, y: top }, text: `${data.x} ${shown(x)}: ${here.slice(0, TIP_LINES).map(([name, point]) => `${name} ${shown(point[1])}`).join(", ")}` };
    });
  }

  // ---------------------------------------------------------------- when
  function drawAll() {
    for (const [figure, state] of drawn) {
      if (figure.isConnected) continue;
      state.chart.dispose();
      drawn.delete(figure);
    }
    for (const figure of document.querySelectorAll("figure.chart[data-from]")) draw(figure);
  }
  function repaint() { for (const state of drawn.values()) paint(state); }
  document.addEventListener("page-changed", drawAll);
  document.addEventListener("theme-changed", repaint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  drawAll();
})();
