// How the systems compare: the headline figures of --json, distributions, and who gained and lost.

import { useMemo, useState } from "preact/hooks";
import { Figure, Grid, Plot } from "./charts";
import { change as delta, count, held, percent, span, trim, u } from "./format";
import { longestWait } from "./job";
import type { Report, Result } from "./model";
import { cdf, onOneAxis, quantile, splitOf } from "./split";
import { go, link } from "./state";

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
  const same = systems.every((s) => s.result.finished === first.finished);
  return (
    <>
      <h1>{systems.length > 1 ? "Compare" : "Summary"}</h1>
      <dl class="facts">
        {(report.head.facts ?? []).map((f) => [<dt key={f.name}>{f.name}</dt>, <dd key={f.name + "."}><bdi>{f.text}</bdi></dd>])}
      </dl>
      <Grid
        id="headline" head={["system", ...shown.map((c) => c.name.replace("GPU", held()))]}
        rows={systems.map((s, i) => [
          <a href={link(report.systems[i].gantt ? "time" : "jobs", { sys: i })}>{s.name}</a>,
          ...shown.map((c) => (
            <span data-value={c.of(s.result)}>
              {c.text(c.of(s.result))}
              {c.lower && i > 0 && same ? <small> {delta(c.of(s.result), c.of(first))}</small> : ""}
            </span>
          )),
        ])}
      />
      {!same && <p class="warn">The systems finished different sets of jobs: their averages are over different jobs, and rank nothing.</p>}
      {report.head.notes.map((n) => <p class="note" key={n}>{n}</p>)}
      {systems.some((s) => s.result.finished > 0)
        ? <Distributions report={report} />
        : <p class="note">No job finished: there is no distribution to show.</p>}
      {systems.length > 1 && same && <Gains report={report} />}
    </>
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
  const [kind, setKind] = useState<(typeof kinds)[number]>("JCT");
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
        {kinds.map((k) => <button key={k} aria-pressed={k === kind} onClick={() => setKind(k)}>{k}</button>)}
      </div>
      <Plot x={data.x} lines={data.lines} height={260} logX xText={text} yText={percent} top={1}
        xTicks={kind === "slow-down" ? undefined : () => []} />
    </Figure>
  );
}

function Gains({ report }: { report: Report }) {
  const [other, setOther] = useState(report.systems.length - 1);
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
      {report.systems.length > 2 && (
        <div class="choices" role="group" aria-label="System">
          {names.slice(1).map((n, i) => <button key={n} aria-pressed={i + 1 === other} onClick={() => setOther(i + 1)}>{n}</button>)}
        </div>
      )}
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
