// Where the time of a job went: waiting, coming up and stopping, work that was lost, work that lasted.

import { whole } from "./format";
import type { Gantt, Report, System } from "./model";

export interface Split {
  jct: number; // NaN: not finished
  queue: number;
  restarts: number; // coming up and stopping
  redone: number;
  work: number;
}

/** splitOf splits the time from submit to finish. The parts sum to it. */
export function splitOf(r: Report, s: System, job: number): Split {
  const finished = r.head.outcomes[s.outcomes.outcome[job]] === "finished";
  const jct = finished ? s.outcomes.finish[job] - r.jobs.submit[job] : NaN;
  const out: Split = { jct, queue: jct, restarts: 0, redone: 0, work: 0 };
  const g = s.gantt;
  if (!g) {
    out.queue = jct - s.outcomes.run[job];
    out.work = s.outcomes.run[job];
    return out;
  }
  for (const i of attemptsOf(g, job)) {
    const a = g.attempts, held = a.end[i] - a.start[i];
    const work = a.work[i] >= 0 ? Math.max(Math.min(a.kept[i], a.stop[i]) - a.work[i], 0) : 0;
    const redone = a.work[i] >= 0 ? Math.max(a.stop[i] - Math.max(a.kept[i], a.work[i]), 0) : 0;
    out.work += work;
    out.redone += redone;
    out.restarts += held - work - redone;
    out.queue -= held;
  }
  for (const part of ["queue", "restarts", "redone", "work"] as const) out[part] = whole(out[part], r.head.unit_s);
  return out;
}

export function attemptsOf(g: Gantt, job: number): Int32Array {
  return g.byJob.subarray(g.ofJob[job], g.ofJob[job + 1]);
}

/** quantile returns the q-quantile of sorted by nearest rank, as --json has it. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return NaN;
  return sorted[Math.max(Math.ceil(q * sorted.length) - 1, 0)];
}

/** cdf returns points of a distribution, few enough to draw. */
export function cdf(values: number[]): { x: number; y: number }[] {
  const sorted = Float64Array.from(values).sort(), n = sorted.length, out: { x: number; y: number }[] = [];
  const step = Math.max(1, Math.floor(n / 400));
  for (let i = 0; i < n; i += step) out.push({ x: sorted[i], y: (i + 1) / n });
  if (n > 0) out.push({ x: sorted[n - 1], y: 1 });
  return out;
}

/** onOneAxis puts distributions on common x values, as a plot wants them. */
export function onOneAxis(list: { x: number; y: number }[][], least: number): { x: number[]; ys: (number | null)[][] } {
  const x = [...new Set(list.flat().map((p) => Math.max(p.x, least)))].sort((a, b) => a - b);
  const ys = list.map((points) => {
    let i = 0, y = 0;
    return x.map((at) => {
      while (i < points.length && Math.max(points[i].x, least) <= at) y = points[i++].y;
      return y;
    });
  });
  return { x, ys };
}
