// Energy and money: what jobs, idle nodes and sleep drew, what it cost, and which jobs cost most.

import { useMemo } from "preact/hooks";
import { Figure, Grid, Plot } from "./charts";
import { at, count, many, percent, span, ticks, trim, u } from "./format";
import type { Report, System } from "./model";
import { light, night } from "./palette";
import { chosen, dark, link } from "./state";
import { Money, SystemChoice } from "./time";

const parts = [
  { key: "energy_busy_kwh", title: "jobs", hue: 0, letter: "J", explains: "of GPUs that jobs held, and their part of the nodes" },
  { key: "energy_idle_kwh", title: "idle", hue: 2, letter: "I", explains: "of GPUs that no one held, on nodes that were up or waking" },
  { key: "energy_sleep_kwh", title: "sleep", hue: 5, letter: "S", explains: "of nodes asleep" },
] as const;

/** figure shows a figure of the result, or says why there is none: 0 is what is not stated. */
function figure(value: number, name: string, digits: number) {
  return value > 0 ? <span data-figure={name} data-value={value}>{trim(value, digits)}</span> : "–";
}

export function Energy({ report }: { report: Report }) {
  const systems = report.systems.map((s) => s.head.result), system = report.systems[chosen.value] ?? report.systems[0];
  const known = systems.some((r) => r.energy_kwh > 0), money = systems.some((r) => r.cost > 0 || r.energy_cost > 0), carbon = systems.some((r) => r.carbon_g > 0);
  const r = system.head.result;
  return (
    <>
      <h1>Energy, money</h1>
      {!known && <p class="note">Power is not measured here, and none is stated for the nodes: no energy is known.</p>}
      {known && <Split report={report} />}
      {(known || money) && (
        <Grid
          id="energy" head={["system", "kWh", "jobs", "idle", "sleep", "kWh a finished job", "cost of energy", "cost of nodes", "kg CO₂e"]}
          rows={report.systems.map((s, i) => {
            const x = s.head.result;
            return [
              <a href={link("energy", { sys: i })}>{s.head.name}</a>, figure(x.energy_kwh, "energy_kwh", 6), figure(x.energy_busy_kwh, "energy_busy_kwh", 6),
              figure(x.energy_idle_kwh, "energy_idle_kwh", 6), figure(x.energy_sleep_kwh, "energy_sleep_kwh", 6),
              x.energy_kwh > 0 && x.finished > 0 ? trim(x.energy_kwh / x.finished, 4) : "–", figure(x.energy_cost, "energy_cost", 6), figure(x.cost, "cost", 6),
              x.carbon_g > 0 ? <span data-figure="carbon_g" data-value={x.carbon_g}>{trim(x.carbon_g / 1000, 5)}</span> : "–",
            ];
          })}
        />
      )}
      {!money && <p class="note">No prices are stated here: no cost is known.</p>}
      {!carbon && <p class="note">The carbon of a kWh is not stated here.</p>}
      <SystemChoice report={report} />
      {system.head.series?.watts ? <Watts system={system} /> : known && <p class="note">How much was drawn when is not known of {system.head.name}.</p>}
      {money && system.head.series && <Money system={system} />}
      {r.energy_busy_kwh > 0 && <Dearest report={report} system={system} />}
    </>
  );
}

/** Split is a bar for each system: as long as what it drew, next to the one that drew most. */
function Split({ report }: { report: Report }) {
  const pal = dark.value ? night : light;
  const most = Math.max(...report.systems.map((s) => s.head.result.energy_kwh));
  const least = [...report.systems].filter((s) => s.head.result.energy_kwh > 0).sort((a, b) => a.head.result.energy_kwh - b.head.result.energy_kwh)[0];
  const r = least.head.result;
  const says = report.systems.length > 1
    ? `${least.head.name} drew least: ${trim(r.energy_kwh, 5)} kWh, ${percent(r.energy_busy_kwh / r.energy_kwh)} of it for jobs.`
    : `${trim(r.energy_kwh, 5)} kWh, ${percent(r.energy_busy_kwh / r.energy_kwh)} of it for jobs.`;
  const used = parts.filter((p) => report.systems.some((s) => s.head.result[p.key] > 0));
  return (
    <Figure title="Where the energy went" says={says}>
      <div class="parts">
        {report.systems.map((s, i) => (
          <div class="part" key={i}>
            <bdi>{s.head.name}</bdi>
            <div class="whole" role="img" aria-label={`${s.head.name}: ` + used.map((p) => `${p.title} ${trim(s.head.result[p.key], 4)} kWh`).join(", ")}>
              {used.map((p) => {
                const part = s.head.result[p.key] / most;
                return part > 0 && (
                  <span key={p.key} style={{ width: `${part * 100}%`, background: pal.hues[p.hue] }} title={`${p.title}: ${trim(s.head.result[p.key], 4)} kWh`}>
                    {part > 0.03 && <b>{p.letter}</b>}
                  </span>
                );
              })}
            </div>
          </div>
        ))}
      </div>
      <ul class="legend">
        {used.map((p) => <li key={p.key}><i style={{ background: pal.hues[p.hue] }} />{p.letter} {p.title}: {p.explains}</li>)}
      </ul>
    </Figure>
  );
}

function Watts({ system }: { system: System }) {
  const s = system.head.series!, watts = s.watts!;
  const x = useMemo(() => Array.from({ length: watts.length + 1 }, (_, i) => s.from_s + i * s.width_s), [s]);
  const lines = useMemo(() => [{ name: "W", hue: 3, values: [...watts, watts[watts.length - 1] ?? 0], step: true, fill: true }], [s]);
  return (
    <Figure title={`Power under ${system.head.name}`} says={`At most ${trim(Math.max(0, ...watts), 4)} W in a step of ${span(s.width_s)}.`}>
      <Plot x={x} lines={lines} height={180} xText={at} yText={(v) => trim(v, 4)} xTicks={ticks} />
    </Figure>
  );
}

function Dearest({ report, system }: { report: Report; system: System }) {
  const o = system.outcomes, r = system.head.result;
  const list = useMemo(() => Array.from({ length: report.jobs.n }, (_, j) => j).filter((j) => o.energy[j] > 0)
    .sort((a, b) => o.energy[b] - o.energy[a] || a - b).slice(0, 20), [report, system]);
  if (list.length === 0) return <p class="note">What single jobs drew is not known.</p>;
  const kwh = (j: number) => o.energy[j] / 3.6e6, share = list.reduce((sum, j) => sum + kwh(j), 0) / r.energy_busy_kwh;
  const price = r.energy_cost > 0 ? r.energy_cost / r.energy_kwh : 0;
  return (
    <Figure title="The dearest jobs" says={`${many(list.length, "job")} drew ${percent(share)} of what jobs drew.${price > 0 ? " Their cost is at the mean price of a kWh of this run." : ""}`}>
      <Grid
        id="dearest" head={["job", "user", "model", u`GPUs`, u`GPU-hours`, "kWh", "share", ...(price > 0 ? ["cost of energy"] : [])]}
        rows={list.map((j) => [
          <a href={link("job", { id: j, sys: chosen.value })}>{report.jobs.name[j].slice(0, 60) || "–"}</a>, <bdi>{report.jobs.user[j].slice(0, 40) || "–"}</bdi>,
          <bdi>{report.jobs.model[j].slice(0, 40) || "–"}</bdi>, count(report.jobs.gpus[j]), trim(o.service[j] / 3600, 4),
          <span data-value={kwh(j)}>{trim(kwh(j), 4)}</span>, percent(kwh(j) / r.energy_busy_kwh), ...(price > 0 ? [trim(kwh(j) * price, 4)] : []),
        ])}
      />
    </Figure>
  );
}
