// The chart of who held which GPU when: past attempts, zoomed by wheel or keys, moved by dragging or arrows.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SIDE } from "./charts";
import { colour, type Colouring } from "./colouring";
import { at, held, many, span, ticks, u } from "./format";
import type { Gantt, Report } from "./model";
import { MIGRATED, NO_START, RESIZED } from "./model";
import { lanesOf, levelOf, Painter, type Lanes, type Level, type View } from "./paint";
import { light, night, type Palette } from "./palette";
import { dark, go, said } from "./state";

export interface Range {
  t0: number;
  t1: number;
}

interface Props {
  report: Report;
  gantt: Gantt;
  sys: number;
  name: string;
  range: Range;
  onRange: (r: Range) => void;
  by: Colouring;
  level: Level | "auto";
  height: number;
  selected: number;
  like?: Gantt; // whose groups have the first hues; its own where there is none
  near?: boolean; // show the rows of what is selected, tall enough to be told apart
  onSelect: (attempt: number) => void;
}

const AXIS = 22;

/** hit returns the attempt under a point, -1 if there is none; y counts rows, which tenants of a shared GPU split. */
export function hit(g: Gantt, lanes: Lanes, t: number, y: number): number {
  const a = g.attempts, row = Math.floor(y);
  for (let i = a.n - 1; i >= 0; i--) {
    if (t < a.start[i] || t >= a.end[i] || Math.floor((y - row) * lanes.lanes[i]) !== lanes.lane[i]) continue;
    for (let r = a.firstRun[i]; r < a.firstRun[i + 1]; r++) {
      for (let n = 0; n < a.runCount[r]; n++) if (g.rowOf[a.runFirst[r] + n] === row) return i;
    }
  }
  return -1;
}

/** sentence says an attempt in words. */
export function sentence(r: Report, g: Gantt, i: number): string {
  const a = g.attempts, job = a.job[i];
  const how = a.live[i] ? "is under way" : `ended ${r.head.outcomes[a.outcome[i]] || "in an unknown way"}`;
  const lost = a.stop[i] - a.kept[i];
  const by = a.other[i] >= 0 && r.head.reasons[a.reason[i]] === "preempted" ? ` by ${r.jobs.name[a.other[i]]}` : "";
  return `Job ${r.jobs.name[job]}, attempt ${a.number[i]}: ${many(a.width[i], held())} for ` +
    `${span(a.end[i] - a.start[i])} from ${at(a.start[i])}; ${how}${by}${lost > 0 ? `; ${span(lost)} of its work was lost` : ""}.`;
}

/** nearOf returns how a chart starts: with all rows, or with those of the selected attempt. */
function nearOf(p: Props): { y0: number; scale: number } {
  const g = p.gantt, a = g.attempts, inner = p.height - AXIS, whole = inner / Math.max(g.rows, 1);
  if (!p.near || p.selected < 0 || whole >= 16) return { y0: 0, scale: 1 };
  const first = a.firstRun[p.selected], row = first < a.firstRun[p.selected + 1] ? g.rowOf[a.runFirst[first]] : 0;
  return { y0: Math.max(row - inner / 17 / 3, 0), scale: 17 / whole };
}

export function Chart(p: Props) {
  const box = useRef<HTMLDivElement>(null), base = useRef<HTMLCanvasElement>(null), over = useRef<HTMLCanvasElement>(null);
  const [at0] = useState(() => nearOf(p));
  const [width, setWidth] = useState(0), [y0, setY0] = useState(at0.y0), [scale, setScale] = useState(at0.scale);
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  const pal: Palette = dark.value ? night : light;
  const g = p.gantt, ratio = Math.max(1, window.devicePixelRatio || 1);
  const legend = useMemo(() => colour(p.report, g, p.by, pal, p.like), [g, p.by, pal, p.like]);
  const lanes = useMemo(() => lanesOf(g), [g]);
  const drag = useRef<{ x: number; y: number; range: Range; y0: number; moved: boolean } | null>(null);
  const inner = p.height - AXIS, plot = Math.max(width - SIDE, 10);
  const row = (inner / Math.max(g.rows, 1)) * scale; // CSS pixels
  const top = Math.min(Math.max(y0, 0), Math.max(g.rows - inner / row, 0));

  useEffect(() => {
    const el = box.current!;
    const seen = new ResizeObserver(() => setWidth(el.clientWidth));
    seen.observe(el);
    setWidth(el.clientWidth);
    return () => seen.disconnect();
  }, []);

  const view: View = { t0: p.range.t0, t1: p.range.t1, y0: top, row: row * ratio };
  const level = p.level === "auto" ? levelOf(g, view, plot * ratio) : p.level;

  useEffect(() => {
    if (width === 0) return;
    const c = base.current!, w = Math.round(plot * ratio), h = Math.round(inner * ratio);
    c.width = w;
    c.height = h;
    const painter = new Painter(w, h);
    if (level === "heat") painter.heat(g, view, pal);
    else painter.bars(g, view, lanes, legend.colours, legend.pale, pal);
    painter.show(c.getContext("2d")!);
    drawOver(over.current!, p, view, level, pal, width, ratio);
    c.dataset.level = level;
  });

  const timeAt = (x: number) => p.range.t0 + ((x - SIDE) / plot) * (p.range.t1 - p.range.t0);
  const zoom = (x: number, by: number) => {
    const t = timeAt(x), full = p.report.to - p.report.from;
    const size = Math.min(Math.max((p.range.t1 - p.range.t0) * by, 1e-3), full * 1.05);
    const t0 = t - ((t - p.range.t0) * size) / (p.range.t1 - p.range.t0);
    p.onRange(clamp(t0, size, p.report));
  };
  const move = (part: number) => {
    const size = p.range.t1 - p.range.t0;
    p.onRange(clamp(p.range.t0 + part * size, size, p.report));
  };
  const rescale = (by: number, y: number) => {
    const next = Math.min(Math.max(scale * by, 1), (40 * g.rows) / inner + 1);
    const at = top + y / row;
    setScale(next);
    setY0(at - y / ((inner / g.rows) * next));
  };
  const onWheel = (e: WheelEvent) => {
    e.preventDefault();
    const r = box.current!.getBoundingClientRect(), by = Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240)));
    if (e.shiftKey || e.altKey) rescale(1 / by, e.clientY - r.top);
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) move(e.deltaX / plot);
    else zoom(Math.max(e.clientX - r.left, SIDE), by);
  };
  useEffect(() => {
    const el = box.current!;
    el.addEventListener("wheel", onWheel, { passive: false });
    return () => el.removeEventListener("wheel", onWheel);
  });
  const find = (e: PointerEvent | MouseEvent) => {
    const r = box.current!.getBoundingClientRect();
    const y = top + (e.clientY - r.top) / row;
    return e.clientX - r.left < SIDE || e.clientY - r.top > inner ? -1 : hit(g, lanes, timeAt(e.clientX - r.left), y);
  };
  const onMove = (e: PointerEvent) => {
    const d = drag.current, r = box.current!.getBoundingClientRect();
    if (d) {
      d.moved = d.moved || Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) > 4;
      const size = d.range.t1 - d.range.t0;
      p.onRange(clamp(d.range.t0 - ((e.clientX - d.x) / plot) * size, size, p.report));
      setY0(d.y0 - (e.clientY - d.y) / row);
      return;
    }
    const i = find(e);
    setTip(i < 0 ? null : { x: e.clientX - r.left, y: e.clientY - r.top, text: sentence(p.report, g, i) });
  };
  const select = (i: number) => {
    p.onSelect(i);
    said.value = i >= 0 ? sentence(p.report, g, i) : "Nothing selected.";
  };
  const onKey = (e: KeyboardEvent) => {
    const step = { ArrowLeft: -0.15, ArrowRight: 0.15 }[e.key];
    if (step) move(step);
    else if (e.shiftKey && (e.key === "ArrowUp" || e.key === "ArrowDown")) rescale(e.key === "ArrowUp" ? 1.4 : 1 / 1.4, inner / 2);
    else if (e.key === "ArrowUp" || e.key === "ArrowDown") setY0(top + (e.key === "ArrowUp" ? -1 : 1) * (inner / row) * 0.15);
    else if (e.key === "+" || e.key === "=") zoom(SIDE + plot / 2, 0.7);
    else if (e.key === "-") zoom(SIDE + plot / 2, 1 / 0.7);
    else if (e.key === "0") p.onRange({ t0: p.report.from, t1: p.report.to });
    else if (e.key === "]" || e.key === "[") select(nextOf(g, p.selected, e.key === "]" ? 1 : -1));
    else if (e.key === "Enter" && p.selected >= 0) go("job", { id: g.attempts.job[p.selected], sys: p.sys });
    else if (e.key === "Escape") select(-1);
    else return;
    e.preventDefault();
  };
  return (
    <>
    <div
      ref={box} class="gantt" tabIndex={0} role="application" style={{ height: `${p.height}px` }}
      aria-label={u`GPUs of ${p.name} over time. Arrows move, plus and minus zoom, brackets select attempts, Enter opens one.`}
      onKeyDown={onKey} onPointerMove={onMove} onPointerLeave={() => setTip(null)}
      onPointerDown={(e) => {
        if (e.button !== 0) return;
        drag.current = { x: e.clientX, y: e.clientY, range: p.range, y0: top, moved: false };
        box.current!.setPointerCapture(e.pointerId);
      }}
      onPointerUp={(e) => {
        const d = drag.current;
        drag.current = null;
        if (d && !d.moved) select(find(e));
      }}
      onDblClick={(e) => {
        const i = find(e);
        if (i >= 0) go("job", { id: g.attempts.job[i], sys: p.sys });
      }}
    >
      <canvas ref={base} class="base" style={{ left: `${SIDE}px`, width: `${plot}px`, height: `${inner}px` }} />
      <canvas ref={over} class="over" style={{ width: `${width}px`, height: `${p.height}px` }} />
      {tip && (
        <div class="tip" style={{ left: `${Math.min(tip.x + 12, Math.max(width - 300, 0))}px`, top: `${tip.y + 14}px` }}>
          {tip.text}
        </div>
      )}
    </div>
    {level === "heat"
      ? <p class="ramp quiet">{held()} time in which work went on: none <i style={{ background: `linear-gradient(90deg, ${pal.ground}, ${pal.hues[0]})` }} /> all of it</p>
      : <ul class="legend">
          {legend.entries.map((e) => <li key={e.name}><i style={{ background: e.colour }} /><bdi>{e.name.slice(0, 60)}</bdi></li>)}
        </ul>}
    </>
  );
}

export function clamp(t0: number, size: number, r: Report): Range {
  const slack = size * 0.02, from = Math.max(Math.min(t0, r.to + slack - size), r.from - slack);
  return { t0: from, t1: from + size };
}

/** nextOf returns the attempt after or before i in time. */
function nextOf(g: Gantt, i: number, by: number): number {
  if (g.attempts.n === 0) return -1;
  return i < 0 ? (by > 0 ? 0 : g.attempts.n - 1) : Math.min(Math.max(i + by, 0), g.attempts.n - 1);
}

const glyphs: [number, string][] = [[NO_START, "!"], [RESIZED, "↔"], [MIGRATED, "⇄"]];

/** markOf is the letter at the end of a bar: why it ended. */
function markOf(r: Report, g: Gantt, i: number): string {
  const a = g.attempts;
  for (const [bit, glyph] of glyphs) if (a.marks[i] & bit) return glyph;
  return { preempted: "▾", failed: "✕", "node-lost": "✕", cancelled: "□" }[r.head.outcomes[a.outcome[i]]] ?? "";
}

function drawOver(c: HTMLCanvasElement, p: Props, v: View, level: Level, pal: Palette, width: number, ratio: number): void {
  c.width = Math.round(width * ratio);
  c.height = Math.round(p.height * ratio);
  const ctx = c.getContext("2d")!, inner = p.height - AXIS, plot = width - SIDE, g = p.gantt, a = g.attempts;
  ctx.scale(ratio, ratio);
  ctx.font = "11px system-ui, sans-serif";
  ctx.fillStyle = pal.ink;
  ctx.textBaseline = "middle";
  const k = plot / (v.t1 - v.t0), row = v.row / ratio;
  ctx.textAlign = "center";
  let free = SIDE;
  for (const t of ticks(v.t0, v.t1, Math.max(3, Math.floor(plot / 90)))) {
    const x = SIDE + (t - v.t0) * k, text = at(t), half = ctx.measureText(text).width / 2;
    if (x - half < free && free > SIDE || x + half > width) continue;
    free = x + half + 12;
    ctx.fillText(text, x, inner + 13);
    ctx.fillRect(x, inner, 1, 4);
  }
  ctx.textAlign = "right";
  let last = -100, at0 = 0;
  for (const n of g.nodes) {
    const y = (at0 + n.gpus / 2 - v.y0) * row;
    at0 += n.gpus;
    if (y < 6 || y > inner - 6 || y - last < 13) continue;
    last = y;
    ctx.fillText(short(ctx, n.name || "a node", SIDE - 10), SIDE - 6, y);
  }
  ctx.textAlign = "left";
  ctx.save();
  ctx.beginPath();
  ctx.rect(SIDE, 0, plot, inner);
  ctx.clip();
  for (let i = 0; i < a.n; i++) {
    const chosen = i === p.selected;
    if (!chosen && level !== "jobs" || a.end[i] < v.t0 || a.start[i] > v.t1) continue;
    const x0 = SIDE + (a.start[i] - v.t0) * k, x1 = SIDE + (a.end[i] - v.t0) * k;
    for (let r = a.firstRun[i]; r < a.firstRun[i + 1]; r++) {
      const y = (g.rowOf[a.runFirst[r]] - v.y0) * row, h = row * a.runCount[r];
      if (y > inner || y + h < 0) continue;
      if (chosen) {
        ctx.strokeStyle = pal.ink;
        ctx.lineWidth = 2;
        ctx.strokeRect(x0, y, Math.max(x1 - x0, 2), h - 1);
      }
      if (level === "jobs" && row >= 8) label(ctx, p, i, Math.max(x0, SIDE), x1, y + row / 2, pal);
    }
  }
  ctx.restore();
}

function label(ctx: CanvasRenderingContext2D, p: Props, i: number, x0: number, x1: number, y: number, pal: Palette): void {
  const mark = markOf(p.report, p.gantt, i), room = x1 - x0 - 8;
  if (room < 14) return;
  ctx.lineWidth = 3;
  ctx.strokeStyle = pal.ground;
  ctx.fillStyle = pal.ink;
  const text = short(ctx, p.report.jobs.name[p.gantt.attempts.job[i]], room - (mark ? 12 : 0));
  ctx.strokeText(text, x0 + 4, y);
  ctx.fillText(text, x0 + 4, y);
  if (mark) {
    ctx.strokeText(mark, x1 - 12, y);
    ctx.fillText(mark, x1 - 12, y);
  }
}

/** short cuts a text to so many pixels. */
function short(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  text = text.slice(0, 80);
  if (room < 12) return "";
  if (ctx.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && ctx.measureText(text.slice(0, n) + "…").width > room) n--;
  return text.slice(0, n) + "…";
}
