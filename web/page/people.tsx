// What each user got.

import { Grid } from "./charts";
import { count, held, many, percent, span, trim, u } from "./format";
import type { Report } from "./model";
import { chosen, link } from "./state";
import { SystemChoice } from "./time";

interface Row {
  user: string;
  jobs: number;
  finished: number;
  hours: number;
  wait: number;
  preempted: number;
  lost: number;
  energy: number;
}

/** value shows a figure, and has it as it is for who reads the page by a program. */
const value = (x: number, text: (x: number) => string) => <span data-value={x}>{text(x)}</span>;

export function People({ report }: { report: Report }) {
  const system = report.systems[chosen.value] ?? report.systems[0], o = system.outcomes;
  const by = new Map<string, Row>();
  for (let j = 0; j < report.jobs.n; j++) {
    const user = report.jobs.user[j];
    let row = by.get(user);
    if (!row) by.set(user, (row = { user, jobs: 0, finished: 0, hours: 0, wait: 0, preempted: 0, lost: 0, energy: 0 }));
    row.jobs++;
    if (report.now === undefined) row.hours += o.service[j] / 3600;
    row.preempted += o.preemptions[j];
    row.lost += o.lost[j] / 3600;
    row.energy += o.energy[j] / 3.6e6;
    if (report.head.outcomes[o.outcome[j]] === "finished") {
      row.finished++;
      row.wait += o.finish[j] - report.jobs.submit[j] - o.run[j];
    }
  }
  // Of a host that is live, what jobs hold now counts, as in the route of users.
  const a = report.now === undefined ? null : system.gantt?.attempts;
  for (let i = 0; a && i < a.n; i++) by.get(report.jobs.user[a.job[i]])!.hours += (a.width[i] * (a.end[i] - a.start[i])) / 3600;
  const sums = system.head.sums?.users.map((u) => ({
    user: u.user, jobs: u.jobs, finished: u.finished, hours: u.gpu_hours, wait: u.wait_s, preempted: u.preempted, lost: u.lost_gpu_hours, energy: u.kwh,
  }));
  const rows = (sums ?? [...by.values()]).sort((a, b) => b.hours - a.hours || (a.user < b.user ? -1 : 1));
  const all = rows.reduce((sum, r) => sum + r.hours, 0), powered = rows.some((r) => r.energy > 0);
  if (rows.length <= 1 && !rows[0]?.user) {
    return (
      <>
        <h1>People</h1>
        <p class="note">The jobs name no users.</p>
      </>
    );
  }
  return (
    <>
      <h1>People</h1>
      <SystemChoice report={report} />
      <p>{many(rows.length, "user")}; {rows[0].user || "jobs without a user"} had most {held()} time, {percent(all > 0 ? rows[0].hours / all : 0)}. Mean waits are over finished jobs.</p>
      <Grid
        id="people" head={["user", "jobs", "finished", u`GPU-hours`, "share", "mean wait", "preempted", u`lost, GPU-h`, ...(powered ? ["kWh"] : [])]}
        rows={rows.slice(0, 500).map((r) => [
          <a href={link("jobs", { sys: chosen.value, q: `user:${/\s/.test(r.user) ? JSON.stringify(r.user) : r.user}` })}>{r.user || "–"}</a>,
          value(r.jobs, count), value(r.finished, count), value(r.hours, (x) => trim(x, 5)), percent(all > 0 ? r.hours / all : 0),
          value(r.finished > 0 ? r.wait / r.finished : NaN, span), value(r.preempted, count), value(r.lost, (x) => trim(x, 3)),
          ...(powered ? [value(r.energy, (x) => trim(x, 4))] : []),
        ])}
      />
      {rows.length > 500 && <p class="note">{count(rows.length - 500)} more users are left out.</p>}
    </>
  );
}
