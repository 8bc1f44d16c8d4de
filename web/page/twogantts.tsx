// GPUs over time under two systems, side by side, on one time axis.

import { Figure } from "./charts";
import { colourings, startsWith, type Colouring } from "./colouring";
import { at, many, percent, span, trim, u } from "./format";
import { Chart, type Range } from "./gantt";
import { attemptsOf } from "./split";
import type { Report } from "./model";
import { change, link, place } from "./state";

/** TwoGantts draws the first system and another. The same job is selected in both, and groups have the same colours. */
export function TwoGantts({ report, other }: { report: Report; other: number }) {
  const sides = [0, other], args = place.value.args, list = sides.map((i) => report.systems[i]);
  if (list.some((s) => !s.gantt)) {
    const without = list.filter((s) => !s.gantt).map((s) => s.head.name).join(" and ");
    return <p class="note">{u`GPUs cannot be set side by side: of ${without} none are recorded.`}</p>;
  }
  const t0 = Number(args.t0 ?? report.from), t1 = Number(args.t1 ?? report.to);
  const range: Range = t1 > t0 ? { t0, t1 } : { t0: report.from, t1: report.to };
  const by = (colourings as readonly string[]).includes(args.by) ? (args.by as Colouring) : startsWith(report);
  const on = args.on === "1" ? 1 : 0, picked = args.pick === undefined ? -1 : Number(args.pick);
  const selected = picked >= 0 && picked < list[on].gantt!.attempts.n ? picked : -1;
  const job = selected < 0 ? -1 : list[on].gantt!.attempts.job[selected];
  const chosenIn = (side: number) => (side === on || job < 0 ? selected : attemptsOf(list[side].gantt!, job)[0] ?? -1);
  const set = (r: Range) => change({ t0: trim(r.t0, 12), t1: trim(r.t1, 12) });
  const rows = Math.max(...list.map((s) => s.gantt!.rows), 1), height = Math.round(Math.min(Math.max(rows * 6, 140), Math.max(innerHeight * 0.45, 200))) + 22;
  return (
    <Figure
      title={`${list[0].head.name} and ${list[1].head.name}, side by side`}
      says={`Work went on in ${percent(list[0].head.result.gpu_busy)} and in ${percent(list[1].head.result.gpu_busy)} of the time. Both show ${at(range.t0)} to ${at(range.t1)}, ${span(range.t1 - range.t0)}.`}
      head={["system", "attempts", u`GPU-hours`, "busy"]}
      rows={list.map((s) => [s.head.name, String(s.gantt!.attempts.n), trim(s.head.result.gpu_hours, 6), percent(s.head.result.gpu_busy)])}
    >
      <div class="bar">
        <label>colour by <select value={by} onChange={(e) => change({ by: e.currentTarget.value })}>
          {colourings.map((c) => <option key={c}>{c}</option>)}
        </select></label>
        <button onClick={() => change({ t0: undefined, t1: undefined })}>all of it</button>
        {job >= 0 && <a href={link("job", { id: job, sys: sides[on] })}>open <bdi>{report.jobs.name[job].slice(0, 60)}</bdi></a>}
      </div>
      <div class="two">
        {list.map((s, side) => (
          <div key={side}>
            <h3><bdi>{s.head.name}</bdi> <small class="quiet">{many(s.gantt!.attempts.n, "attempt")}</small></h3>
            <Chart report={report} gantt={s.gantt!} sys={sides[side]} name={s.head.name} range={range} onRange={set} by={by} level="auto" height={height}
              like={list[0].gantt!} selected={chosenIn(side)} onSelect={(i) => change({ pick: i < 0 ? undefined : i, on: i < 0 || side === 0 ? undefined : 1 })} />
          </div>
        ))}
      </div>
    </Figure>
  );
}
