// How the jobs would have fared under other systems. First stands how far the simulation is from what happened: a
// difference below that says nothing.

import { useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Grid } from "./charts";
import { change as delta, count, many, percent, signedPercent, span } from "./format";
import { ask, board, can, get, info, looking } from "./live";
import type { Report } from "./model";
import { change, live, place } from "./state";

interface Row {
  system: string;
  settings: Record<string, string>;
  recorded: boolean;
  error?: string;
  jobs: number;
  mean_jct_s: number;
  p95_jct_s: number;
  mean_queue_s: number;
  makespan_s: number;
  busy: number;
  preemptions: number;
  sim_error?: { mean_jct: number; p95_jct: number; mean_queue: number; makespan: number; per_job_median: number };
  paired?: { mean_jct: number; low: number; high: number; blocks: number };
}

/** WhatIfDoc is the document of trainyard whatif --json. */
export interface WhatIfDoc {
  ended: number;
  censored: number;
  never_ran: number;
  earlier_systems?: string[];
  rows: Row[];
}

interface Run {
  id: string;
  state: "running" | "done" | "failed" | "cancelled";
  seq: number;
  systems: string[];
  simulated: number;
  of: number;
  system?: string;
  error?: string;
  result?: WhatIfDoc;
}

export function WhatIf({ report }: { report?: Report }) {
  const doc = report?.head.whatif;
  return (
    <>
      <h1>What if</h1>
      {live ? <Asked /> : doc ? <Rows doc={doc} /> : <p class="note">This file has no what-if. <code>trainyard whatif --report FILE.html</code> writes one that has.</p>}
    </>
  );
}

/** run is the question that was asked last, for as long as the page is open. */
const run = signal<Run | null>(null);
const failed = signal("");

async function question(systems: string[]): Promise<void> {
  failed.value = "";
  try {
    run.value = (await (await ask("/v1/whatif", { post: true, body: { systems } })).json()) as Run;
  } catch (e) {
    failed.value = e instanceof Error ? e.message : String(e);
  }
}

async function takeBack(id: string): Promise<void> {
  try {
    run.value = (await (await ask(`/v1/whatif/${encodeURIComponent(id)}/cancel`, { post: true })).json()) as Run;
  } catch (e) {
    failed.value = e instanceof Error ? e.message : String(e);
  }
}

function Asked() {
  const [text, setText] = useState(place.value.args.systems ?? ""), r = run.value;
  useEffect(() => {
    if (r?.state !== "running") return;
    let over = false;
    const timer = setInterval(() => {
      get<Run>(`/v1/whatif/${encodeURIComponent(r.id)}`).then((d) => { if (!over) run.value = d; }, (e: Error) => {
        if (over) return;
        failed.value = e.message;
        if (e.name !== "TypeError") run.value = null;
      });
    }, 700);
    return () => {
      over = true;
      clearInterval(timer);
    };
  }, [r?.id, r?.state]);
  if (!can("whatif")) return <p class="note">This host does not simulate. <code>trainyard whatif --log LOG.jsonl</code> does, of a log of it.</p>;
  if (looking() || info.value?.role === "viewer") return <p class="note">To ask this takes processor time of the host: it is for users, not for who only looks. <code>trainyard whatif</code> asks it too.</p>;
  const systems = text.split(/[\s,]+/).filter((s) => s), running = r?.state === "running";
  const start = () => {
    change({ systems: systems.join(",") || undefined });
    void question(systems);
  };
  return (
    <>
      <p>The jobs so far, as they came and with the work that they turned out to be, simulated under other systems on the same {board.value?.unit ?? "GPU"}s. It takes a processor of the host, at the lowest priority.</p>
      <form class="bar" onSubmit={(e) => { e.preventDefault(); start(); }}>
        <label>systems <input id="systems" value={text} placeholder="the usual ones" onInput={(e) => setText(e.currentTarget.value)} /></label>
        <button id="ask" type="submit" disabled={running}>simulate</button>
        {running && <button id="take-back" type="button" onClick={() => void takeBack(r.id)}>cancel</button>}
        <span class="quiet">as <code>trainyard whatif{systems.length > 0 ? ` --system ${systems.join(",")}` : ""}</code></span>
      </form>
      {failed.value && <p class="warn" role="alert"><bdi>{failed.value}</bdi></p>}
      {r && <p id="run" role="status" data-state={r.state}>{words(r)}</p>}
      {r && board.value && r.state === "done" && board.value.seq > r.seq && <p class="note">{many(board.value.seq - r.seq, "event")} happened since: ask again for a newer one.</p>}
      {r?.result && <Rows doc={r.result} />}
    </>
  );
}

function words(r: Run): string {
  switch (r.state) {
    case "running":
      return r.of > 0 ? `Simulates ${r.system}, ${r.simulated + 1} of ${r.of}.` : "Reads the log.";
    case "failed":
      return `It failed: ${r.error}.`;
    case "cancelled":
      return "It was cancelled.";
  }
  return `Of the log up to event ${r.seq}.`;
}

/** Rows are the figures of a document: the first is the simulation of what happened, with its error. */
export function Rows({ doc }: { doc: WhatIfDoc }) {
  const was = doc.rows.find((r) => r.recorded), base = doc.rows.find((r) => r.sim_error), others = doc.rows.filter((r) => r !== was && r !== base && !r.error);
  if (!was || doc.ended === 0) return <p class="note">No job has ended: there is nothing to compare yet.</p>;
  const off = base?.sim_error, limit = Math.abs(off?.mean_jct ?? NaN), broken = doc.rows.filter((r) => r.error);
  const cells = (r: Row) => [
    span(r.p95_jct_s), span(r.mean_queue_s), span(r.makespan_s), percent(r.busy), count(r.preemptions),
  ];
  const mean = (r: Row) => <span data-system={r.system} data-recorded={r.recorded} data-value={r.mean_jct_s}>{span(r.mean_jct_s)}</span>;
  const rows = others.map((r) => {
    const diff = base ? r.mean_jct_s / base.mean_jct_s - 1 : NaN, grey = base !== undefined && Math.abs(diff) <= limit;
    const chance = r.paired !== undefined && r.paired.low <= 0 && r.paired.high >= 0;
    return [
      <span class={grey ? "within" : ""}>{r.system}</span>, "simulated", count(r.jobs), mean(r),
      <span class={grey ? "within" : ""} data-grey={grey} data-system={r.system}>{base ? delta(r.mean_jct_s, base.mean_jct_s) : "–"}{grey && <span class="under">below the simulation's own error</span>}{!grey && chance && <span class="under">may be chance</span>}</span>,
      r.paired ? <span data-low={r.paired.low} data-high={r.paired.high}>{signedPercent(r.paired.low)} to {signedPercent(r.paired.high)}</span> : "–", ...cells(r),
    ];
  });
  const blocks = others.find((r) => r.paired)?.paired?.blocks ?? 0;
  return (
    <>
      <p class="lead" id="error">
        {base && off
          ? <>The simulation of <bdi>{base.system}</bdi> itself is off by <b data-value={off.mean_jct}>{signedPercent(off.mean_jct)}</b> in mean JCT from what happened, {signedPercent(off.p95_jct)} in p95, {signedPercent(off.makespan)} in makespan; by job {percent(off.per_job_median)} (median). A difference below that says nothing.</>
          : doc.earlier_systems && doc.earlier_systems.length > 0
            ? <>Several systems decided, one after the other: how far off simulations are is not known. Compare them with one another.</>
            : <>What decided cannot be simulated: how far off simulations are is not known.</>}
      </p>
      <Grid id="whatif" head={["system", "row", "jobs", "mean JCT", "difference", "95 % interval", "p95", "queued", "makespan", "busy", "preempted"]}
        rows={[
          ...(base && off ? [[base.system, <>simulated, against<br />what happened</>, count(base.jobs), mean(base), `off by ${signedPercent(off.mean_jct)}`, "–", ...cells(base)]] : []),
          [was.system, "happened", count(was.jobs), mean(was), "–", "–", ...cells(was)],
          ...rows,
        ]} />
      {broken.length > 0 && <ul class="problems">{broken.map((r, i) => <li key={i}><bdi>{r.system}</bdi> cannot be simulated: <bdi>{r.error}</bdi></li>)}</ul>}
      <p class="quiet">
        {blocks > 0
          ? `Intervals are of the paired difference in mean JCT, by a bootstrap over ${blocks} blocks of jobs that arrived one after the other: one trace, not several. `
          : base ? "There are too few jobs for intervals: they take 20 blocks of 10 jobs that ended. " : ""}
        {many(doc.ended, "job")} ended and {doc.ended === 1 ? "is" : "are"} counted{doc.censored > 0 && `; ${count(doc.censored)} had not ended, simulated as far as they came, not counted`}{doc.never_ran > 0 && `; ${count(doc.never_ran)} never ran, and are left out`}. {many(was.preemptions, "preemption")} happened. Systems that ask how long jobs take know it here, and come out better than they would be.
      </p>
    </>
  );
}

