// By what bars are coloured: the seven largest groups have a hue, all others are neutral.

import { count, held, many } from "./format";
import type { Gantt, Report } from "./model";
import { blend, pixel, type Palette } from "./palette";

export const colourings = ["user", "model", "width", "class", "outcome", "reason"] as const;
export type Colouring = (typeof colourings)[number];

export interface Legend {
  colours: Uint32Array;
  pale: Uint32Array;
  entries: { name: string; colour: string; hours: number }[];
}

export function keyOf(r: Report, g: Gantt, by: Colouring, i: number): string {
  const a = g.attempts, job = a.job[i];
  switch (by) {
    case "user":
      return r.jobs.user[job] || "no user";
    case "model":
      return r.jobs.model[job] || "no model";
    case "class":
      return r.jobs.class[job] || "no class";
    case "width":
      return many(a.width[i], held());
    case "outcome":
      return a.live[i] ? "under way" : r.head.outcomes[a.outcome[i]] || "unknown";
    case "reason":
      return r.head.reasons[a.reason[i]] || "none";
  }
}

/** groups returns the group of each attempt, and how many hours each group held. */
function groups(r: Report, g: Gantt, by: Colouring): { keys: string[]; hours: Map<string, number> } {
  const a = g.attempts, hours = new Map<string, number>(), keys = new Array<string>(a.n);
  for (let i = 0; i < a.n; i++) {
    keys[i] = keyOf(r, g, by, i);
    hours.set(keys[i], (hours.get(keys[i]) ?? 0) + ((a.end[i] - a.start[i]) * a.width[i]) / 3600);
  }
  return { keys, hours };
}

/** colour gives each attempt a colour. The groups that held most have hues: most of like, so that two charts agree. */
export function colour(r: Report, g: Gantt, by: Colouring, p: Palette, like: Gantt = g): Legend {
  const a = g.attempts, { keys, hours } = groups(r, g, by), first = like === g ? hours : groups(r, like, by).hours;
  const weight = (name: string) => first.get(name) ?? -1;
  const ranked = [...hours].sort((x, y) => weight(y[0]) - weight(x[0]) || y[1] - x[1] || (x[0] < y[0] ? -1 : 1));
  const entries = ranked.slice(0, p.hues.length).map(([name, h], n) => ({ name, colour: p.hues[n], hours: h }));
  const rest = ranked.slice(p.hues.length);
  if (rest.length > 0) {
    const h = rest.reduce((sum, [, x]) => sum + x, 0);
    entries.push({ name: `${count(rest.length)} others`, colour: p.neutral, hours: h });
  }
  const hue = new Map(entries.map((e) => [e.name, e.colour]));
  const colours = new Uint32Array(a.n), pale = new Uint32Array(a.n);
  const known = new Map<string, [number, number]>();
  for (let i = 0; i < a.n; i++) {
    let both = known.get(keys[i]);
    if (!both) {
      const c = hue.get(keys[i]) ?? p.neutral;
      both = [pixel(c), pixel(blend(c, p.ground, 0.45))];
      known.set(keys[i], both);
    }
    [colours[i], pale[i]] = both;
  }
  return { colours, pale, entries };
}

/** startsWith is what says most: users where there are several, else models, else widths. */
export function startsWith(report: Report): Colouring {
  const several = (list: string[]) => new Set(list).size > 1;
  if (several(report.jobs.user)) return "user";
  return several(report.jobs.model) ? "model" : "width";
}
