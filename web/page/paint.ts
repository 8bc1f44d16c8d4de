// Paints attempts as pixels: one pass over the bars, one write of the image. Coordinates are device pixels.

import type { Gantt } from "./model";
import { SHARED } from "./model";
import { blend, pixel, type Palette } from "./palette";

export interface View {
  t0: number; // seconds at the left edge
  t1: number;
  y0: number; // row at the upper edge
  row: number; // device pixels of a row, > 0
}

export type Level = "heat" | "bars" | "jobs";

export interface Lanes {
  lane: Uint8Array;
  lanes: Uint8Array;
}

/** lanesOf gives attempts that share GPUs lanes of their rows. */
export function lanesOf(g: Gantt): Lanes {
  const a = g.attempts, lane = new Uint8Array(a.n), lanes = new Uint8Array(a.n).fill(1);
  const on: number[][] = [];
  for (let i = 0; i < a.n; i++) {
    if (!(a.marks[i] & SHARED)) continue;
    let taken = 0;
    const group = [i];
    for (let r = a.firstRun[i]; r < a.firstRun[i + 1]; r++) {
      for (let k = 0; k < a.runCount[r]; k++) {
        const gpu = a.runFirst[r] + k;
        const list = (on[gpu] ?? []).filter((x) => a.end[x] > a.start[i]);
        for (const x of list) {
          taken |= 1 << lane[x];
          group.push(x);
        }
        list.push(i);
        on[gpu] = list;
      }
    }
    while (taken & (1 << lane[i]) && lane[i] < 7) lane[i]++;
    let most = lane[i] + 1;
    for (const x of group) most = Math.max(most, lanes[x], lane[x] + 1);
    for (const x of group) lanes[x] = most;
  }
  return { lane, lanes };
}

/** levelOf says which level suits: most bars below 3 pixels are noise. */
export function levelOf(g: Gantt, v: View, width: number): Level {
  const a = g.attempts, k = width / (v.t1 - v.t0);
  let thin = 0, all = 0;
  const step = Math.max(1, Math.floor(a.n / 20000));
  for (let i = 0; i < a.n; i += step) {
    if (a.end[i] <= v.t0 || a.start[i] >= v.t1) continue;
    all++;
    if ((a.end[i] - a.start[i]) * k < 3) thin++;
  }
  if (g.heat && v.t1 - v.t0 > g.heat.width * 20) return "heat";
  if (all > 200 && thin * 2 > all || v.row < 1) return "heat";
  return v.row >= 12 ? "jobs" : "bars";
}

export class Painter {
  private image: ImageData;
  private px: Uint32Array;
  constructor(readonly width: number, readonly height: number) {
    this.image = new ImageData(width, height);
    this.px = new Uint32Array(this.image.data.buffer);
  }

  show(ctx: CanvasRenderingContext2D): void {
    ctx.putImageData(this.image, 0, 0);
  }

  private fill(x0: number, x1: number, y0: number, y1: number, c: number): void {
    x0 = Math.max(x0, 0);
    x1 = Math.min(x1, this.width);
    y0 = Math.max(y0, 0);
    y1 = Math.min(y1, this.height);
    if (x1 <= x0) return;
    for (let y = y0; y < y1; y++) this.px.fill(c, y * this.width + x0, y * this.width + x1);
  }

  private hatch(x0: number, x1: number, y0: number, y1: number, c: number): void {
    x0 = Math.max(x0, 0);
    x1 = Math.min(x1, this.width);
    y0 = Math.max(y0, 0);
    y1 = Math.min(y1, this.height);
    for (let y = y0; y < y1; y++) {
      for (let x = x0; x < x1; x++) if ((x + y) % 5 < 2) this.px[y * this.width + x] = c;
    }
  }

  /** bars paints a row for each GPU; colours has that of each attempt. */
  bars(g: Gantt, v: View, lanes: Lanes, colours: Uint32Array, pale: Uint32Array, p: Palette): void {
    const a = g.attempts, k = this.width / (v.t1 - v.t0), ground = pixel(p.ground);
    const gap = v.row >= 4 ? 1 : 0;
    this.px.fill(ground);
    this.rules(g, v, p);
    this.closed(g, v, p);
    for (let i = 0; i < a.n; i++) {
      if (a.end[i] <= v.t0 || a.start[i] >= v.t1) continue;
      const x = (t: number) => Math.round((Math.min(Math.max(t, v.t0 - 1e9), v.t1 + 1e9) - v.t0) * k);
      const x0 = x(a.start[i]), x1 = Math.max(x(a.end[i]), x0 + 1), wide = x1 - x0 > 3;
      const work = wide ? (a.work[i] >= 0 ? x(Math.min(a.work[i], a.stop[i])) : x(a.stop[i])) : x0;
      const stop = wide ? x(a.stop[i]) : x1, kept = wide ? Math.max(x(a.kept[i]), work) : x1;
      const lane = lanes.lane[i], of = lanes.lanes[i];
      for (let r = a.firstRun[i]; r < a.firstRun[i + 1]; r++) {
        for (let n = 0; n < a.runCount[r]; n++) {
          const top = (g.rowOf[a.runFirst[r] + n] - v.y0) * v.row;
          if (top >= this.height || top + v.row <= 0) continue;
          const y0 = Math.round(top + (v.row * lane) / of);
          const y1 = Math.max(Math.round(top + (v.row * (lane + 1)) / of) - gap, y0 + 1);
          this.fill(work, stop, y0, y1, colours[i]);
          if (work > x0) this.fill(x0, work, y0, y1, pale[i]);
          if (x1 > stop) this.fill(stop, x1, y0, y1, pale[i]);
          if (stop > kept) this.hatch(kept, stop, y0, y1, ground);
        }
      }
    }
  }

  /** rules paints a line between nodes where there is room. */
  private rules(g: Gantt, v: View, p: Palette): void {
    if (v.row < 3) return;
    const c = pixel(blend(p.neutral, p.ground, 0.35));
    let row = 0;
    for (const n of g.nodes) {
      row += n.gpus;
      const y = Math.round((row - v.y0) * v.row) - 1;
      this.fill(0, this.width, y, y + 1, c);
    }
  }

  /** closed hatches GPUs that were down, drained, asleep or with others. */
  private closed(g: Gantt, v: View, p: Palette): void {
    const k = this.width / (v.t1 - v.t0), c = pixel(blend(p.neutral, p.ground, 0.6));
    const s = g.spells;
    for (let i = 0; i < s.n; i++) {
      if (s.to[i] <= v.t0 || s.from[i] >= v.t1) continue;
      const x0 = Math.round((Math.max(s.from[i], v.t0) - v.t0) * k);
      const x1 = Math.round((Math.min(s.to[i], v.t1) - v.t0) * k);
      for (let n = 0; n < s.count[i]; n++) {
        const top = (g.rowOf[s.first[i] + n] - v.y0) * v.row;
        this.hatch(x0, x1, Math.round(top), Math.round(top + v.row), c);
      }
    }
  }

  /** heat paints nodes, or several in one line of pixels, by the share of GPU time in which work went on. */
  heat(g: Gantt, v: View, p: Palette): void {
    const a = g.attempts, k = this.width / (v.t1 - v.t0), w = this.width;
    const bands = this.bands(g, v), sums = bands.map(() => new Float32Array(w + 1));
    const bandOf = new Int32Array(g.rows).fill(-1);
    bands.forEach((b, n) => bandOf.fill(n, b.from, b.to));
    if (g.heat) fromGrid(g, v, bandOf, sums, k);
    for (let i = 0; i < a.n && !g.heat; i++) {
      if (a.stop[i] <= v.t0 || a.start[i] >= v.t1 || !(a.work[i] < a.stop[i])) continue;
      const x0 = Math.max((a.work[i] - v.t0) * k, 0), x1 = Math.min((a.stop[i] - v.t0) * k, w);
      if (x1 <= x0) continue;
      for (let r = a.firstRun[i]; r < a.firstRun[i + 1]; r++) {
        for (let n = 0; n < a.runCount[r]; n++) {
          const b = bandOf[g.rowOf[a.runFirst[r] + n]];
          if (b >= 0) addSpan(sums[b], x0, x1);
        }
      }
    }
    const ramp = Array.from({ length: 65 }, (_, i) => pixel(blend(p.hues[0], p.ground, i / 64)));
    this.px.fill(pixel(p.ground));
    bands.forEach((b, n) => {
      let level = 0;
      for (let x = 0; x < w; x++) {
        level += sums[n][x];
        const part = Math.min(Math.max(level / (b.to - b.from), 0), 1);
        const c = ramp[Math.round(part * 64)];
        for (let y = b.y0; y < b.y1; y++) this.px[y * w + x] = c;
      }
    });
    this.closed(g, v, p);
  }

  /** bands are what heat has a line for: a node, or the nodes that fall into one line of two pixels. */
  private bands(g: Gantt, v: View): { from: number; to: number; y0: number; y1: number }[] {
    const list: { from: number; to: number; y0: number; y1: number }[] = [];
    let row = 0;
    for (const gpus of partsOf(g, v)) {
      const y0 = Math.round((row - v.y0) * v.row), y1 = Math.round((row + gpus - v.y0) * v.row);
      const last = list[list.length - 1];
      if (last && (y0 < last.y0 + 2 || last.y1 - last.y0 < 2)) {
        last.to = row + gpus;
        last.y1 = Math.max(y1, last.y0 + 1);
      } else {
        list.push({ from: row, to: row + gpus, y0, y1: Math.max(y1, y0 + 1) });
      }
      row += gpus;
    }
    return list
      .filter((b) => b.y1 > 0 && b.y0 < this.height)
      .map((b) => ({ ...b, y0: Math.max(b.y0, 0), y1: Math.min(b.y1, this.height) }));
  }
}

/** partsOf returns the GPUs of each node; a node of very many is cut into parts of four pixels. */
function partsOf(g: Gantt, v: View): number[] {
  const list: number[] = [];
  for (const n of g.nodes) {
    const size = n.gpus > 64 ? Math.max(Math.ceil(4 / v.row), 1) : n.gpus;
    for (let left = n.gpus; left > 0; left -= size) list.push(Math.min(size, left));
  }
  return list;
}

/** fromGrid adds the shares of a grid to sums, which are differences. A node that is cut into bands has the same in each. */
function fromGrid(g: Gantt, v: View, bandOf: Int32Array, sums: Float32Array[], k: number): void {
  const h = g.heat!, w = sums.length > 0 ? sums[0].length - 1 : 0;
  let row = 0;
  g.nodes.forEach((node, n) => {
    const gpus = new Map<number, number>(); // of the node, by band
    for (let i = 0; i < node.gpus; i++, row++) if (bandOf[row] >= 0) gpus.set(bandOf[row], (gpus.get(bandOf[row]) ?? 0) + 1);
    for (const [band, size] of gpus) {
      for (let b = 0; b < h.buckets; b++) {
        const share = h.share[n * h.buckets + b];
        const x0 = Math.max((h.from + b * h.width - v.t0) * k, 0), x1 = Math.min((h.from + (b + 1) * h.width - v.t0) * k, w);
        if (share > 0 && x1 > x0) addSpan(sums[band], x0, x1, (share / 255) * size);
      }
    }
  });
}

/** addSpan adds an amount between x0 and x1 to sums, which are differences: whole pixels alone get all of it. */
function addSpan(sums: Float32Array, x0: number, x1: number, amount = 1): void {
  const a = Math.floor(x0), b = Math.floor(x1);
  if (a === b) {
    sums[a] += (x1 - x0) * amount;
    sums[a + 1] -= (x1 - x0) * amount;
    return;
  }
  const left = a + 1 - x0, right = x1 - b;
  sums[a] += left * amount;
  sums[a + 1] += (1 - left) * amount;
  sums[b] += (right - 1) * amount;
  if (b + 1 < sums.length) sums[b + 1] -= right * amount;
}
