// GPUs over time, and under them what the cluster did, on one axis.

import { useMemo } from "preact/hooks";
import { Figure, Plot } from "./charts";
import { Coming } from "./coming";
import { colour, colourings, startsWith, type Colouring } from "./colouring";
import { at, count, held, many, percent, span, ticks, title, trim, u } from "./format";
import { Chart, type Range } from "./gantt";
import type { Report, System } from "./model";
import type { Level } from "./paint";
import { light, night } from "./palette";
import { change, chosen, dark, go, place } from "./state";

export function SystemChoice({ report }: { report: Report }) {
  if (report.systems.length < 2) return null;
  return (
    <div class="choices" role="group" aria-label="System">
      {report.systems.map((s, i) => (
        <button key={i} aria-pressed={i === chosen.value} onClick={() => change({ sys: i })}>{s.head.name}</button>
      ))}
    </div>
  );
}

export function NoGPUs({ system }: { system: System }) {
  return (
    <p class="note">
      {system.head.engine === "trainyard"
        ? u`This run recorded no GPUs.`
        : `${system.head.name} was computed by ${system.head.engine}, a simulator of its own that knows no GPUs: there are its jobs alone.`}
    </p>
  );
}

export function Time({ report }: { report: Report }) {
  const system = report.systems[chosen.value] ?? report.systems[0], args = place.value.args;
  return (
    <>
      <h1>Time</h1>
      <SystemChoice report={report} />
      {system.gantt ? <Charts report={report} system={system} args={args} /> : <NoGPUs system={system} />}
    </>
  );
}

function Charts({ report, system, args }: { report: Report; system: System; args: Record<string, string> }) {
  const g = system.gantt!;
  // Of a host that is live the last day is shown first.
  const t0 = Number(args.t0 ?? (report.now === undefined ? report.from : Math.max(report.from, report.to - 86400))), t1 = Number(args.t1 ?? report.to);
  const range: Range = t1 > t0 ? { t0, t1 } : { t0: report.from, t1: report.to };
  const by = (colourings as readonly string[]).includes(args.by) ? (args.by as Colouring) : startsWith(report);
  const level = (["heat", "bars", "jobs"].includes(args.level) ? args.level : "auto") as Level | "auto";
  const picked = args.pick === undefined ? -1 : Number(args.pick);
  const selected = picked >= 0 && picked < g.attempts.n ? picked : -1;
  const pal = dark.value ? night : light;
  const legend = useMemo(() => colour(report, g, by, pal), [g, by, pal]);
  const rows = Math.max(g.rows, 1), height = Math.round(Math.min(Math.max(rows * 9, 160), Math.max(innerHeight * 0.55, 240))) + 22;
  const set = (r: Range) => change({ t0: trim(r.t0, 12), t1: trim(r.t1, 12) });
  const all = system.head.losses;
  // The result of a host that is live has attempts that are over alone.
  const busy = report.now !== undefined && all ? all.classes[report.head.classes.indexOf("useful")] / all.gpu_hours : system.head.result.gpu_busy;
  return (
    <>
      <div class="bar">
        <label>colour by <select value={by} onChange={(e) => change({ by: e.currentTarget.value })}>
          {colourings.map((c) => <option key={c}>{c}</option>)}
        </select></label>
        <label>level <select value={level} onChange={(e) => change({ level: e.currentTarget.value === "auto" ? undefined : e.currentTarget.value })}>
          {["auto", "heat", "bars", "jobs"].map((c) => <option key={c}>{c}</option>)}
        </select></label>
        <button onClick={() => change({ t0: undefined, t1: undefined, rows: undefined })}>all of it</button>
        <span class="quiet">{at(range.t0)} to {at(range.t1)}, {span(range.t1 - range.t0)}</span>
        {selected >= 0 && (
          <button onClick={() => go("job", { id: g.attempts.job[selected], sys: chosen.value })}>
            open <bdi>{report.jobs.name[g.attempts.job[selected]].slice(0, 60)}</bdi>
          </button>
        )}
      </div>
      <Figure
        title={title(u`GPUs of ${system.head.name}`)}
        says={`${many(g.attempts.n, "attempt")} of ${many(report.jobs.n, "job")} on ${many(g.rows, held())} of ` +
          `${many(g.nodes.length, "node")}; work went on in ${percent(busy)} of their time. Pale: starting or stopping. Striped: lost later. Hatched: no job may use it.`}
        head={[by, u`GPU-hours`]} rows={legend.entries.map((e) => [e.name, trim(e.hours, 5)])}
      >
        <Chart key={args.rows} near={args.rows === "near"} report={report} gantt={g} sys={chosen.value} name={system.head.name} range={range} onRange={set} by={by} level={level}
          height={height} selected={selected} onSelect={(i) => change({ pick: i < 0 ? undefined : i })} />
      </Figure>
      {all && all.gpu_hours === 0
        ? <p class="note">No time passed.</p>
        : <>
            {report.now !== undefined && <Coming now={report.now} />}
            {system.head.series && <Series system={system} range={range} />}
          </>}
    </>
  );
}

/** Money is what nodes and energy cost over time, where they have prices. */
export function Money({ system, range }: { system: System; range?: Range }) {
  const s = system.head.series!, result = system.head.result;
  const { x, lines } = useMemo(() => {
    const n = s.held.length, step = (v: number[]) => [...Array.from({ length: n }, (_, i) => v[i] ?? 0), v[n - 1] ?? 0];
    return {
      x: Array.from({ length: n + 1 }, (_, i) => s.from_s + i * s.width_s),
      lines: [
        ...(s.dollars_per_hour ? [{ name: "nodes", hue: 5, values: step(s.dollars_per_hour), step: true, fill: true }] : []),
        ...(s.energy_dollars_per_hour ? [{ name: "energy", hue: 3, values: step(s.energy_dollars_per_hour), step: true }] : []),
      ],
    };
  }, [s]);
  if (lines.length === 0) return <p class="note">Prices are not known here.</p>;
  const sums = [s.dollars_per_hour && `nodes cost ${trim(result.cost, 5)} dollars in all`, s.energy_dollars_per_hour && `energy cost ${trim(result.energy_cost, 5)}`].filter((t) => t);
  return (
    <Figure title="Dollars an hour" says={title(sums.join(", ")) + "."} id="money">
      <Plot x={x} lines={lines} height={130} range={range && [range.t0, range.t1]} xText={at} xTicks={ticks} yText={(v) => trim(v, 4)} />
    </Figure>
  );
}

function Series({ system, range }: { system: System; range: Range }) {
  const s = system.head.series!;
  const x = useMemo(() => {
    const list = [];
    for (let i = 0; i <= s.held.length; i++) list.push(s.from_s + i * s.width_s);
    return list;
  }, [s]);
  const step = (v: number[]) => [...v, v.length > 0 ? v[v.length - 1] : 0];
  const held = useMemo(() => [
    { name: u`GPUs there`, hue: 4, values: step(s.gpus), step: true },
    { name: "held by jobs", hue: 0, values: step(s.held), step: true, fill: true },
  ], [s]);
  const queue = useMemo(() => [
    { name: "jobs that wait", hue: 1, values: step(s.queue), step: true, fill: true },
    { name: u`GPUs they ask for`, hue: 2, values: step(s.asked), step: true },
  ], [s]);
  const watts = useMemo(() => [{ name: "W", hue: 3, values: step(s.watts ?? []), step: true, fill: true }], [s]);
  const common = { x, range: [range.t0, range.t1] as [number, number], xText: at, xTicks: ticks, height: 130 };
  // The last step may be shorter than the others.
  const end = system.head.losses?.to_s ?? s.from_s + s.held.length * s.width_s;
  const mean = (v: number[]) => v.reduce((sum, x, i) => sum + x * Math.max(Math.min(s.width_s, end - s.from_s - i * s.width_s), 0), 0) / Math.max(end - s.from_s, 1e-9);
  return (
    <>
      <Figure title={title(u`GPUs held`)} says={u`${trim(mean(s.held), 3)} of ${trim(mean(s.gpus), 3)} GPUs on average.`}>
        <Plot {...common} lines={held} yText={(v) => trim(v, 3)} />
      </Figure>
      <Figure title="Queue" says={`${trim(mean(s.queue), 3)} jobs waited on average, ${count(Math.max(0, ...s.queue))} at most.`}>
        <Plot {...common} lines={queue} yText={(v) => trim(v, 3)} />
      </Figure>
      {s.watts
        ? <Figure title="Power" says={`${trim(mean(s.watts), 4)} W on average; ${trim(system.head.result.energy_kwh, 4)} kWh in all.`}>
            <Plot {...common} lines={watts} yText={(v) => trim(v, 4)} />
          </Figure>
        : <p class="note">Power is not known here.</p>}
      <Money system={system} range={range} />
    </>
  );
}
