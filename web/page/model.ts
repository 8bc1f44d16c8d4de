// What a report holds, as the page uses it. Times are seconds since the origin of the run.

import { decode, type Ints, type Table } from "./columns";
import { setOrigin, setUnit } from "./format";
import type { WhatIfDoc } from "./whatif";

export interface Result {
  jobs: number;
  finished: number;
  rejected: number;
  unfinished: number;
  avg_jct_s: number;
  p50_jct_s: number;
  p95_jct_s: number;
  p99_jct_s: number;
  avg_queue_s: number;
  max_wait_s: number;
  avg_run_s: number;
  makespan_s: number;
  gpu_allocated: number;
  gpu_busy: number;
  gpu_hours: number;
  lost_gpu_hours?: number;
  preemptions: number;
  migrations: number;
  resizes: number;
  deadline_misses: number;
  energy_kwh: number;
  energy_busy_kwh: number;
  energy_idle_kwh: number;
  energy_sleep_kwh: number;
  energy_cost: number;
  carbon_g: number;
  cost: number;
}

export interface Losses {
  from_s: number;
  to_s: number;
  gpu_hours: number;
  classes: number[];
  users: { user: string; classes: number[] }[];
  width_s: number;
  over: number[][];
}

export interface Series {
  from_s: number;
  width_s: number;
  held: number[];
  gpus: number[];
  queue: number[];
  asked: number[];
  watts?: number[];
  dollars_per_hour?: number[]; // of nodes
  energy_dollars_per_hour?: number[];
}

export type Cell = string | number | boolean | null;

/** Sums are what is left of jobs that the file does not have. */
export interface Sums {
  quantiles: Record<string, number[]>; // of finished jobs, evenly spaced
  users: { user: string; jobs: number; finished: number; gpu_hours: number; wait_s: number; preempted: number; lost_gpu_hours: number; kwh: number }[];
}

/** Heat is the share of GPU time in which work went on, by node and time: of all jobs, where not all are kept. */
export interface Heat {
  from: number;
  width: number;
  buckets: number;
  share: Ints; // in 255ths
}

interface SystemHead {
  name: string;
  settings: Record<string, string> | null;
  engine: string;
  log_hash?: string;
  result: Result;
  gpus: boolean;
  losses?: Losses;
  series?: Series;
  sums?: Sums;
  paired?: Paired;
}

/** Paired is how far a mean JCT is from that of the first system, relative to it, with its 95 % interval. */
export interface Paired {
  mean_jct: number;
  low: number;
  high: number;
  blocks: number;
}

/** Compared is of jobs that finished under all systems, by what they ask for and how long they run. */
export interface Compared {
  jobs: number;
  quartile_s: number[];
  cells: { gpus: string; quartile: number; jobs: number; mean_jct_s: number[]; mean_queue_s: number[] }[];
}

export interface Head {
  schema: string;
  version: string;
  command?: string[];
  facts: { name: string; text: string }[] | null;
  notes: string[];
  anonymous: boolean;
  unit_s: number;
  rounded: boolean;
  systems: SystemHead[];
  tables?: { title: string; head: string[]; rows: Cell[][] }[];
  printed?: string;
  plan?: unknown;
  kept?: { jobs: number; of: number; says: string };
  reasons: string[];
  outcomes: string[];
  classes: string[];
  gpu_types: string[] | null;
  unit?: string; // what jobs hold, where that is no GPU
  whatif?: WhatIfDoc;
  compared?: Compared;
}

export interface Jobs {
  n: number;
  name: string[];
  user: string[];
  model: string[];
  class: string[];
  submit: Float64Array;
  deadline: Float64Array;
  gpus: Ints;
  fewest: Ints;
  most: Ints;
}

/** Attempts lie in the order in which they were ordered. Times are seconds; what never came is NaN. */
export interface Attempts {
  n: number;
  job: Ints;
  number: Ints;
  start: Float64Array;
  end: Float64Array; // of one under way, the end of the run
  live: Uint8Array;
  work: Float64Array; // NaN: it never worked
  kept: Float64Array; // from here on to stop its work was lost
  stop: Float64Array;
  outcome: Ints;
  reason: Ints;
  other: Ints; // job, -1 = none
  batch: Ints;
  given: Ints; // number of the event by which it got its GPUs, 0 = unknown
  marks: Ints;
  width: Int32Array;
  firstRun: Int32Array; // n + 1 of them
  runFirst: Ints;
  runCount: Ints;
}

export interface Node {
  name: string;
  first: number;
  gpus: number;
  type: number;
  rack: number;
}

/** Spells are times in which GPUs were given to no job: down, drained, asleep, with others. */
export interface Spells {
  n: number;
  first: Ints;
  count: Ints;
  class: Ints;
  from: Float64Array;
  to: Float64Array;
}

export interface Gantt {
  heat: Heat | null;
  spells: Spells;
  nodes: Node[];
  rows: number; // GPUs
  rowOf: Int32Array; // by GPU
  nodeOfRow: Int32Array;
  attempts: Attempts;
  ofJob: Int32Array; // n + 1: where attempts of a job start in byJob
  byJob: Int32Array;
}

export interface Outcomes {
  start: Float64Array; // NaN = it never started
  finish: Float64Array;
  run: Float64Array;
  outcome: Ints;
  preemptions: Ints;
  migrations: Ints;
  resizes: Ints;
  service: Float64Array; // GPU-seconds
  lost: Float64Array;
  energy: Ints;
}

export interface System {
  head: SystemHead;
  outcomes: Outcomes;
  gantt: Gantt | null;
}

export interface Report {
  head: Head;
  jobs: Jobs;
  systems: System[];
  from: number;
  to: number;
  now?: number; // of a run that goes on
}

export const RESIZED = 1, MIGRATED = 2, SHARED = 4, NO_START = 8;

function seconds(list: Ints, unit: number): Float64Array {
  const out = new Float64Array(list.length);
  for (let i = 0; i < out.length; i++) out[i] = list[i] * unit;
  return out;
}

/** since returns times that the file has as differences to others; -1 there means that it never came. */
function since(list: Ints, from: Float64Array, unit: number): Float64Array {
  const out = new Float64Array(list.length);
  for (let i = 0; i < out.length; i++) out[i] = list[i] < 0 ? NaN : from[i] + list[i] * unit;
  return out;
}

function readJobs(t: Table, unit: number): Jobs {
  const gpus = t.ints("gpus"), fewer = t.ints("fewer"), more = t.ints("more");
  return {
    n: t.rows, name: t.strings("name"), user: t.strings("user"), model: t.strings("model"), class: t.strings("class"),
    submit: seconds(t.ints("submit"), unit), deadline: seconds(t.ints("deadline"), unit), gpus,
    fewest: gpus.map((n, i) => n - fewer[i]), most: gpus.map((n, i) => n + more[i]),
  };
}

/** readOutcomes reads what became of jobs: differences to what their attempts say. */
function readOutcomes(t: Table, attempts: Table | undefined, runs: Table | undefined, unit: number): Outcomes {
  const n = t.rows, outcome = t.ints("outcome"), started = t.ints("started");
  const end = new Float64Array(n), run = new Float64Array(n), service = new Float64Array(n);
  if (attempts && runs) {
    const job = attempts.ints("job"), start = attempts.ints("start"), length = attempts.ints("length");
    const count = attempts.ints("runs"), size = runs.ints("count");
    for (let i = 0, r = 0; i < attempts.rows; i++) {
      let width = 0;
      for (const last = r + count[i]; r < last; r++) width += size[r];
      if (length[i] < 0) continue;
      end[job[i]] = start[i] + length[i];
      run[job[i]] += length[i];
      service[job[i]] += length[i] * width;
    }
  }
  const moreEnd = t.ints("finish"), moreRun = t.ints("run"), moreService = t.ints("service");
  const finish = new Float64Array(n), first = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    finish[i] = outcome[i] === 0 ? NaN : (end[i] + moreEnd[i]) * unit;
    first[i] = started[i] ? 0 : NaN;
    run[i] = (run[i] + moreRun[i]) * unit;
    service[i] = (service[i] + moreService[i]) * unit;
  }
  return {
    start: first, finish, run, outcome, preemptions: t.ints("preemptions"), migrations: t.ints("migrations"),
    resizes: t.ints("resizes"), service, lost: seconds(t.ints("lost_ms"), 1e-3), energy: t.ints("energy_j"),
  };
}

function readAttempts(t: Table, runs: Table, unit: number, to: number): Attempts {
  const n = t.rows, start = seconds(t.ints("start"), unit), length = t.ints("length");
  const end = new Float64Array(n), stop = new Float64Array(n), kept = new Float64Array(n), live = new Uint8Array(n);
  const stopping = t.ints("stopping"), redone = t.ints("redone");
  const width = new Int32Array(n), firstRun = new Int32Array(n + 1), count = t.ints("runs"), runCount = runs.ints("count");
  for (let i = 0; i < n; i++) {
    live[i] = length[i] < 0 ? 1 : 0;
    end[i] = live[i] ? Math.max(to, start[i]) : start[i] + length[i] * unit;
    stop[i] = end[i] - stopping[i] * unit;
    kept[i] = stop[i] - redone[i] * unit;
    firstRun[i + 1] = firstRun[i] + count[i];
    for (let r = firstRun[i]; r < firstRun[i + 1]; r++) width[i] += runCount[r];
  }
  const other = t.ints("other");
  for (let i = 0; i < n; i++) other[i]--;
  return {
    n, job: t.ints("job"), number: t.ints("number"), start, end, live, work: since(t.ints("work"), start, unit), kept, stop,
    outcome: t.ints("outcome"), reason: t.ints("reason"), other, batch: t.ints("batch"), given: t.ints("given"), marks: t.ints("marks"), width,
    firstRun, runFirst: runs.ints("first"), runCount,
  };
}

function readGantt(tables: Map<string, Table>, jobs: number, unit: number, to: number): Gantt | null {
  const t = tables.get("attempts"), nodeTable = tables.get("nodes"), runs = tables.get("runs");
  if (!t || !nodeTable || !runs) return null;
  const nodes: Node[] = [];
  const names = nodeTable.strings("name"), first = nodeTable.ints("first"), gpus = nodeTable.ints("gpus");
  const type = nodeTable.ints("type"), rack = nodeTable.ints("rack");
  let most = 0, rows = 0;
  for (let i = 0; i < nodeTable.rows; i++) {
    nodes.push({ name: names[i], first: first[i], gpus: gpus[i], type: type[i], rack: rack[i] });
    most = Math.max(most, first[i] + gpus[i]);
    rows += gpus[i];
  }
  const rowOf = new Int32Array(most), nodeOfRow = new Int32Array(rows);
  let row = 0;
  nodes.forEach((node, k) => {
    for (let g = 0; g < node.gpus; g++, row++) {
      rowOf[node.first + g] = row;
      nodeOfRow[row] = k;
    }
  });
  const attempts = readAttempts(t, runs, unit, to);
  const closed = tables.get("spells")!, started = seconds(closed.ints("from"), unit);
  const spells: Spells = {
    n: closed.rows, first: closed.ints("first"), count: closed.ints("count"), class: closed.ints("class"), from: started,
    to: seconds(closed.ints("length"), unit).map((d, i) => started[i] + d),
  };
  const ofJob = new Int32Array(jobs + 1), byJob = new Int32Array(attempts.n);
  for (let i = 0; i < attempts.n; i++) ofJob[attempts.job[i] + 1]++;
  for (let j = 0; j < jobs; j++) ofJob[j + 1] += ofJob[j];
  const next = ofJob.slice();
  for (let i = 0; i < attempts.n; i++) byJob[next[attempts.job[i]]++] = i;
  const axis = tables.get("heat-axis");
  const heat = axis ? {
    from: axis.ints("from_ms")[0] / 1000, width: axis.ints("width_us")[0] / 1e6, buckets: axis.ints("buckets")[0], share: tables.get("heat")!.ints("share"),
  } : null;
  return { heat, spells, nodes, rows, rowOf, nodeOfRow, attempts, ofJob, byJob };
}

function block(id: string): string {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error(`block ${id} is missing in this file`);
  return text;
}

/** read reads the whole file that the page stands in. */
export async function read(): Promise<Report> {
  let head: Head;
  try {
    head = JSON.parse(block("head")) as Head;
  } catch (e) {
    throw new Error(`block head of this file is damaged: ${e instanceof Error ? e.message : String(e)}`);
  }
  return build(head, block("jobs"), head.systems.map((_, i) => block(`system-${i}`)), 0);
}

/** History is what a host answers of what happened so far. */
export interface History {
  seq: number;
  origin: string;
  now_s: number;
  head: Head;
  jobs: string;
  system: string;
}

/** parseHistory reads what a host answers. Times are of the clock then. */
export async function parseHistory(doc: History): Promise<Report> {
  setOrigin(Date.parse(doc.origin) / 1000);
  return { ...(await build(doc.head, doc.jobs, [doc.system], doc.now_s)), now: doc.now_s };
}

/** build makes a report of its parts. now is when a run that goes on was seen, 0 = it is over. */
async function build(head: Head, packedJobs: string, packedSystems: string[], now: number): Promise<Report> {
  setUnit(head.unit);
  const packed = await decode("jobs", packedJobs);
  const jobs = readJobs(packed.get("jobs")!, head.unit_s);
  let from = Infinity, to = now;
  for (let i = 0; i < jobs.n; i++) from = Math.min(from, jobs.submit[i]);
  const parts: Map<string, Table>[] = [];
  const systems: System[] = [];
  for (let i = 0; i < head.systems.length; i++) parts.push(await decode(`system-${i}`, packedSystems[i]));
  head.systems.forEach((h, i) => {
    const outcomes = readOutcomes(parts[i].get("outcomes")!, parts[i].get("attempts"), parts[i].get("runs"), head.unit_s);
    let end = Math.max(h.losses?.to_s ?? 0, now);
    for (const t of outcomes.finish) if (t > end) end = t;
    to = Math.max(to, end);
    systems.push({ head: h, outcomes, gantt: readGantt(parts[i], jobs.n, head.unit_s, end) });
  });
  if (!(from < Infinity)) from = 0;
  return { head, jobs, systems, from, to: Math.max(to, from + 1) };
}
