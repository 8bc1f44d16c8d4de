// The filter of the jobs table: words that must be in the name, user:ann, model:bert, state:failed, gpus>4, wait>3600.

import { whole } from "./format";
import { board } from "./live";
import type { Report, System } from "./model";
import { live } from "./state";

export type Test = (job: number) => boolean;

export function stateOf(r: Report, s: System, j: number): string {
  const word = r.head.outcomes[s.outcomes.outcome[j]];
  const row = live ? board.value?.jobs.get(j) : undefined;
  if (row && row.state !== "done") return row.state;
  return word || (s.outcomes.start[j] >= 0 ? "unfinished" : "never-started");
}

/** numberOf returns a figure of a job that can be compared, NaN where it is not known. */
export function numberOf(r: Report, s: System, j: number, name: string): number {
  const o = s.outcomes, jct = o.finish[j] - r.jobs.submit[j];
  switch (name) {
    case "gpus":
      return r.jobs.gpus[j];
    case "submit":
      return r.jobs.submit[j];
    case "jct":
      return whole(jct, r.head.unit_s);
    case "wait":
    case "queue":
      return whole(jct - o.run[j], r.head.unit_s);
    case "run":
      return o.run[j];
    case "preempted":
      return o.preemptions[j];
    case "lost":
      return o.lost[j];
    case "hours":
      return o.service[j] / 3600;
    case "number":
      return j;
  }
  return NaN;
}

/** parse reads a filter. A word that it does not understand must be in the name. */
export function parse(text: string, r: Report, s: System): Test {
  const tests: Test[] = [];
  for (const m of text.matchAll(/(?:(user|model|class|state):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    const [, field, quoted, plain] = m, value = (quoted ?? plain ?? "").replace(/\\(.)/g, "$1"), low = value.toLowerCase();
    const compared = /^(gpus|submit|jct|wait|queue|run|preempted|lost|hours|number)(>=|<=|>|<|=)(\d+(?:\.\d+)?)$/.exec(value);
    if (field === "state") tests.push((j) => stateOf(r, s, j).startsWith(low));
    else if (field) {
      const list = r.jobs[field as "user" | "model" | "class"];
      tests.push((j) => list[j].toLowerCase() === low);
    } else if (compared) {
      const [, name, op, limit] = compared, x = Number(limit);
      const ok: Record<string, (v: number) => boolean> = {
        ">": (v) => v > x, "<": (v) => v < x, ">=": (v) => v >= x, "<=": (v) => v <= x, "=": (v) => v === x,
      };
      tests.push((j) => ok[op](numberOf(r, s, j, name)));
    } else tests.push((j) => r.jobs.name[j].toLowerCase().includes(low));
  }
  return (j) => tests.every((t) => t(j));
}
