// How the systems compare: the headline figures of --json, distributions, and who gained and lost.

import { useMemo } from "preact/hooks";
import { Figure, Grid, Plot } from "./charts";
import { change as delta, count, held, many, percent, signedPercent, span, trim, u } from "./format";
import { longestWait } from "./job";
import type { Compared, Report, Result } from "./model";
import { cdf, onOneAxis, quantile, splitOf } from "./split";
import { change, go, link, place } from "./state";
import { TwoGantts } from "./twogantts";

const columns: { name: string; of: (r: Result) => number; text: (x: number) => string; lower?: boolean }[] = [
  { name: "finished", of: (r) => r.finished, text: count },
  { name: "mean JCT", of: (r) => r.avg_jct_s, text: span, lower: true },
  { name: "median", of: (r) => r.p50_jct_s, text: span },
  { name: "p95", of: (r) => r.p95_jct_s, text: span },
  { name: "mean queue", of: (r) => r.avg_queue_s, text: span, lower: true },
  { name: "makespan", of: (r) => r.makespan_s, text: span },
  { name: "preempted", of: (r) => r.preemptions, text: count },
  { name: "lost, GPU-h", of: (r) => r.lost_gpu_hours ?? 0, text: (x) => trim(x, 3) },
  { name: "busy", of: (r) => r.gpu_busy, text: percent },
];

const extra: typeof columns = [
  { name: "kWh", of: (r) => r.energy_kwh, text: (x) => trim(x, 4) },
  { name: "cost", of: (r) => r.cost, text: (x) => trim(x, 5) },
  { name: "late", of: (r) => r.deadline_misses, text: count },
];

export function Compare({ report }: { report: Report }) {
  const systems = report.head.systems, first = systems[0].result;
  const shown = [...columns, ...extra.filter((c) => systems.some((s) => c.of(s.result) > 0))];
  const same = systems.every((s) => s.result.finished === first.finished), paired = systems.find((s) => s.paired)?.paired;
  const other = otherOf(report);
  return (
    <>
      <h1>{systems.length > 1 ? "Compare" : "Summary"}</h1>
      <dl class="facts">
        {(report.head.facts ?? []).map((f) => [<dt key={f.name}>{f.name}</dt>, <dd key={f.name + "."}><bdi>{f.text}</bdi></dd>])}
      </dl>
      <Grid
        id="headline" head={["system", ...shown.map((c) => c.name.replace("GPU", held())), ...(paired ? ["JCT, 95 %"] : [])]}
        rows={systems.map((s, i) => [
          <a href={link(report.systems[i].gantt ? "time" : "jobs", { sys: i })}>{s.name}</a>,
          ...shown.map((c) => (
            <span data-value={c.of(s.result)}>
              {c.text(c.of(s.result))}
              {c.lower && i > 0 && same ? <small> {delta(c.of(s.result), c.of(first))}</small> : ""}
            </span>
          )),
          ...(paired ? [s.paired ? <span data-low={s.paired.low} data-high={s.paired.high}>{signedPercent(s.paired.low)} to {signedPercent(s.paired.high)}</span> : "–"] : []),
        ])}
      />
      {systems.length > 1 && same && (
        <p class="quiet" id="paired">
          {paired
            ? `Intervals are of the paired difference in mean JCT from ${systems[0].name}, by a bootstrap over ${paired.blocks} blocks of jobs that arrived one after the other: one trace, not several.`
            : "There are too few jobs for intervals: they take 20 blocks of 10 jobs that finished."}
        </p>
      )}
      {!same && <p class="warn">The systems finished different sets of jobs: their averages are over different jobs, and rank nothing.</p>}
      {report.head.notes.map((n) => <p class="note" key={n}>{n}</p>)}
      {systems.some((s) => s.result.finished > 0)
        ? <Distributions report={report} />
        : <p class="note">No job finished: there is no distribution to show.</p>}
      {report.head.compared && <Cells report={report} doc={report.head.compared} />}
      {systems.length > 2 && <Other report={report} other={other} />}
      {systems.length > 1 && <TwoGantts report={report} other={other} />}
      {systems.length > 1 && same && <Gains report={report} other={other} />}
    </>
  );
}

/** otherOf is the system that is set next to the first: the last, until another is chosen. */
function otherOf(report: Report): number {
  const n = Number(place.value.args.with ?? NaN);
  return n > 0 && n < report.systems.length ? Math.floor(n) : report.systems.length - 1;
}

function Other({ report, other }: { report: Report; other: number }) {
  return (
    <div class="choices" role="group" aria-label={`System next to ${report.systems[0].head.name}`}>
      {report.systems.slice(1).map((s, i) => <button key={i} aria-pressed={i + 1 === other} onClick={() => change({ with: i + 1, pick: undefined, on: undefined })}>{s.head.name}</button>)}
    </div>
  );
}

const means = { "mean JCT": "mean_jct_s", "mean queue": "mean_queue_s" } as const;

/** Cells is a table of jobs by how many GPUs they ask for, and how long they run. */
function Cells({ report, doc }: { report: Report; doc: Compared }) {
  const of = place.value.args.cells === "queue" ? "mean queue" : "mean JCT", field = means[of];
  const q = doc.quartile_s, names = report.systems.map((s) => s.head.name);
  const runs = [`up to ${span(q[0])}`, `to ${span(q[1])}`, `to ${span(q[2])}`, `above ${span(q[2])}`];
  const wins = names.map((_, i) => doc.cells.filter((c) => c[field][i] <= Math.min(...c[field])).length);
  const best = wins.indexOf(Math.max(...wins));
  return (
    <Figure
      title={u`By GPUs and run time`}
      says={`${many(doc.jobs, "job")} finished under all systems. Quarters are of their run times under ${names[0]}. ${names[best]} has the least ${of} in ${wins[best]} of ${many(doc.cells.length, "group")}.`}
    >
      <div class="choices" role="group" aria-label="Mean of">
        {(Object.keys(means) as (keyof typeof means)[]).map((k) => <button key={k} aria-pressed={k === of} onClick={() => change({ cells: k === "mean queue" ? "queue" : undefined })}>{k}</button>)}
      </div>
      <Grid
        id="cells" label={u`${of} by GPUs and run time`} head={[u`GPUs`, "run time", "jobs", ...names]}
        rows={doc.cells.map((c) => [
          c.gpus, runs[c.quartile - 1], <span data-gpus={c.gpus} data-quartile={c.quartile} data-jobs={c.jobs}>{count(c.jobs)}</span>,
          ...names.map((_, i) => <span data-value={c[field][i]}>{span(c[field][i])}{i > 0 && <small> {delta(c[field][i], c[field][0])}</small>}</span>),
        ])}
      />
    </Figure>
  );
}

const kinds = ["JCT", "queue", "slow-down"] as const;

function valuesOf(report: Report, i: number, kind: (typeof kinds)[number]): number[] {
  const sums = report.systems[i].head.sums;
  if (sums) return sums.quantiles[kind] ?? [];
  const out: number[] = [], o = report.systems[i].outcomes;
  for (let j = 0; j < report.jobs.n; j++) {
    if (report.head.outcomes[o.outcome[j]] !== "finished") continue;
    const jct = o.finish[j] - report.jobs.submit[j];
    if (kind === "JCT") out.push(jct);
    else if (kind === "queue") out.push(jct - o.run[j]);
    else if (o.run[j] > 0) out.push(jct / o.run[j]);
  }
  return out;
}

function Distributions({ report }: { report: Report }) {
  const kind = kinds.find((k) => k === place.value.args.of) ?? "JCT";
  const data = useMemo(() => {
    const values = report.systems.map((_, i) => valuesOf(report, i, kind));
    const least = kind === "slow-down" ? 1 : 1;
    const axis = onOneAxis(values.map(cdf), least);
    const lines = report.systems.map((s, i) => ({ name: s.head.name, hue: i, values: axis.ys[i], step: true }));
    const rows = report.systems.map((s, i) => {
      const sorted = Float64Array.from(values[i]).sort();
      return [s.head.name, ...[0.1, 0.25, 0.5, 0.75, 0.95, 0.99].map((q) => text(quantile(sorted, q)))];
    });
    return { x: axis.x, lines, rows, medians: values.map((v) => quantile(Float64Array.from(v).sort(), 0.5)) };
    function text(x: number) {
      return kind === "slow-down" ? trim(x, 3) : span(x);
    }
  }, [report, kind]);
  const text = (v: number) => (kind === "slow-down" ? trim(v, 3) : span(v));
  const best = data.medians.indexOf(Math.min(...data.medians.filter((m) => m >= 0)));
  const says = report.systems.length > 1
    ? `Half of the jobs ${kind === "slow-down" ? "have a slow-down of at most" : kind === "JCT" ? "are done within" : "wait at most"} ` +
      report.systems.map((s, i) => `${text(data.medians[i])} under ${s.head.name}`).join(", ") + "."
    : `The median is ${text(data.medians[Math.max(best, 0)])}.`;
  return (
    <Figure
      title={`Distribution of ${kind}`} says={says + (kind === "queue" ? " Waits below a second are drawn at one second." : "")}
      head={["system", "p10", "p25", "p50", "p75", "p95", "p99"]} rows={data.rows}
    >
      <div class="choices" role="group" aria-label="Figure">
        {kinds.map((k) => <button key={k} aria-pressed={k === kind} onClick={() => change({ of: k === "JCT" ? undefined : k })}>{k}</button>)}
      </div>
      <Plot x={data.x} lines={data.lines} height={260} logX xText={text} yText={percent} top={1}
        xTicks={kind === "slow-down" ? undefined : () => []} />
    </Figure>
  );
}

function Gains({ report, other }: { report: Report; other: number }) {
  const rows = useMemo(() => {
    const a = report.systems[0], b = report.systems[other];
    const list = [];
    for (let j = 0; j < report.jobs.n; j++) {
      const was = splitOf(report, a, j), now = splitOf(report, b, j), d = now.jct - was.jct;
      if (Number.isFinite(d)) list.push({ j, d, was, now });
    }
    list.sort((x, y) => x.d - y.d || x.j - y.j);
    const ends = [...list.slice(0, 8), ...list.slice(Math.max(list.length - 8, 8))];
    return { ends, gained: list.filter((x) => x.d < 0).length, lost: list.filter((x) => x.d > 0).length };
  }, [report, other]);
  const names = report.systems.map((s) => s.head.name);
  const signed = (x: number) => (Math.abs(x) < 5e-4 ? "0" : (x > 0 ? "+" : "") + span(x));
  return (
    <Figure
      title={`Who gained and lost: ${names[other]} against ${names[0]}`}
      says={`${report.head.kept ? `Of the ${count(report.head.kept.jobs)} jobs kept here ` : ""}${count(rows.gained)} jobs are done earlier under ${names[other]}, ${count(rows.lost)} later. Each difference is ` +
        "split into waiting, starts and stops, work done again, and work itself (narrower or slower); the parts sum to it."}
    >
      <Grid
        id="gains" head={["job", u`GPUs`, names[0], names[other], "difference", "waiting", "starts, stops", "redone", "work", `longest wait under ${names[other]}`]}
        rows={rows.ends.map(({ j, d, was, now }) => [
          <a href={link("job", { id: j, sys: other })} onClick={() => go("job", { id: j, sys: other })}>{report.jobs.name[j]}</a>,
          count(report.jobs.gpus[j]), span(was.jct), span(now.jct), signed(d), signed(now.queue - was.queue),
          signed(now.restarts - was.restarts), signed(now.redone - was.redone), signed(now.work - was.work),
          <bdi>{longestWait(report, report.systems[other], j)}</bdi>,
        ])}
      />
    </Figure>
  );
}
