// Charts of lines and areas, by uPlot. Each has a title, a sentence made from its data, and a table of the same numbers.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import uPlot from "uplot";
import { light, night } from "./palette";
import { dark } from "./state";

/** SIDE is the room for names left of charts that share an axis, in pixels. */
export const SIDE = 76;

export interface Line {
  name: string;
  hue: number;
  values: (number | null)[];
  step?: boolean;
  fill?: boolean;
  points?: boolean; // without a line
}

interface PlotProps {
  x: number[];
  lines: Line[];
  height: number;
  logX?: boolean;
  range?: [number, number];
  xText: (v: number) => string;
  yText: (v: number) => string;
  xTicks?: (from: number, to: number, most: number) => number[];
  top?: number; // of the y axis
}

/** Plot draws lines over x. */
export function Plot(p: PlotProps) {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null);
  const [width, setWidth] = useState(0);
  const pal = dark.value ? night : light;
  useEffect(() => {
    const el = box.current!;
    const seen = new ResizeObserver(() => setWidth(el.clientWidth));
    seen.observe(el);
    setWidth(el.clientWidth);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    if (width === 0) return;
    const grid = { stroke: pal.neutral + "33", width: 1 };
    const axis = { stroke: pal.ink, grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const u = new uPlot(
      {
        width, height: p.height, padding: [8, 0, 0, 0],
        cursor: { drag: { x: false, y: false } },
        legend: { show: true, live: true },
        scales: {
          x: { time: false, distr: p.logX ? 3 : 1, range: p.range ? () => p.range! : undefined },
          y: { range: (_u, _min, max) => [0, p.top ?? (max > 0 ? max * 1.05 : 1)] },
        },
        axes: [
          {
            ...axis, space: 70, filter: (_u, list) => list,
            values: (u, list) => list.map((v) => (v === null || u.valToPos(v, "x") > (u.over.clientWidth || width - SIDE) - 26 ? "" : p.xText(v))),
            splits: p.xTicks && (p.logX
              ? (u) => logTicks(u.scales.x.min ?? 1, u.scales.x.max ?? 10)
              : (u) => p.xTicks!(u.scales.x.min ?? 0, u.scales.x.max ?? 1, Math.max(2, Math.floor(width / 110)))),
          },
          { ...axis, size: SIDE, values: (_u, list) => list.map((v) => (v === null ? "" : p.yText(v))) },
        ],
        series: [
          { label: "at", value: (_u, v) => (v === null ? "–" : p.xText(v)) },
          ...p.lines.map((l) => ({
            label: l.name, stroke: pal.hues[l.hue % pal.hues.length], width: l.points ? 0 : 2,
            points: l.points ? { show: true, size: 12, width: 2, fill: pal.hues[l.hue % pal.hues.length], stroke: pal.hues[l.hue % pal.hues.length] } : { show: false },
            fill: l.fill ? pal.hues[l.hue % pal.hues.length] + "40" : undefined,
            paths: l.step ? uPlot.paths.stepped!({ align: 1 }) : undefined,
            value: (_u: uPlot, v: number | null) => (v === null || v === undefined ? "–" : p.yText(v)),
          })),
        ],
      },
      [p.x, ...p.lines.map((l) => l.values)] as uPlot.AlignedData,
      box.current!,
    );
    plot.current = u;
    return () => u.destroy();
  }, [p.x, p.lines, width, pal, p.height]);
  useEffect(() => {
    if (plot.current && p.range) plot.current.setScale("x", { min: p.range[0], max: p.range[1] });
  }, [p.range?.[0], p.range?.[1]]);
  return <div ref={box} class="plot" style={{ minHeight: `${p.height + 30}px` }} />;
}

function logTicks(from: number, to: number): number[] {
  const list = [];
  for (const t of [1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000]) if (t >= from && t <= to) list.push(t);
  return list;
}

interface FigureProps {
  title: string;
  says: string;
  head?: string[];
  rows?: string[][];
  id?: string;
  children: ComponentChildren;
}

/** Figure is a chart with its title, what it says, and its numbers. */
export function Figure(p: FigureProps) {
  const [open, setOpen] = useState(false), many = (p.rows?.length ?? 0) > 300; // a long table is built as it is opened
  return (
    <figure id={p.id}>
      <figcaption>
        <h2>{p.title}</h2>
        <p>{p.says}</p>
      </figcaption>
      {p.children}
      {p.rows && (
        <details onToggle={(e) => setOpen(e.currentTarget.open)}>
          <summary>The numbers</summary>
          <Grid head={p.head!} rows={many && !open ? [] : p.rows} label={`The numbers of ${p.title}`} />
        </details>
      )}
    </figure>
  );
}

/** Grid is a table; all columns but the first hold numbers. */
export function Grid(p: { head: string[]; rows: ComponentChildren[][]; id?: string; label?: string }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={p.label ?? p.head.join(", ")}>
      <table id={p.id}>
        <thead>
          <tr>{p.head.map((h, i) => <th key={i} scope="col" class={i ? "num" : ""}>{h}</th>)}</tr>
        </thead>
        <tbody>
          {p.rows.map((row, n) => (
            <tr key={n}>{row.map((c, i) => (i ? <td key={i} class="num">{c}</td> : <th key={i} scope="row"><bdi>{c}</bdi></th>))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
