// What is to come, on the axis of what was: when jobs start and end, with the interval that holds in 8 of 10 cases.

import { Figure } from "./charts";
import { at, clock, many, sinceOrigin, tickAt, ticks } from "./format";
import { board, type JobDoc } from "./live";
import { light, night } from "./palette";
import { dark, link } from "./state";
import { AsOf, usePolled, within } from "./yard";

const MOST = 40;

export function Coming({ now }: { now: number }) {
  const doc = usePolled<{ jobs: JobDoc[]; foreseen_at?: string }>("/v1/jobs?state=waiting,starting,running,stopping&ahead_ms=-1", board.value?.seq ?? 0);
  const pal = dark.value ? night : light;
  if (!doc) return <p class="note">Looking ahead…</p>;
  const all = doc.jobs.filter((j) => j.end?.known || j.start?.known);
  if (all.length === 0) return <p class="note">{doc.jobs.length === 0 ? "No job is under way or waits." : "Nothing is known yet of when these jobs end."}</p>;
  const list = all.slice(0, MOST).map((j) => {
    const running = j.gpus.length > 0, s = j.start, e = j.end;
    return { j, running, from: running ? now : sinceOrigin(s?.median), low: running ? now : sinceOrigin(s?.low), late: sinceOrigin(s?.high), to: sinceOrigin(e?.median), early: sinceOrigin(e?.low), high: sinceOrigin(e?.high) };
  }).sort((a, b) => (a.from || 0) - (b.from || 0) || a.j.id - b.j.id);
  const last = Math.max(now + 60, ...list.flatMap((x) => [x.to, x.high, x.late]).filter((x) => Number.isFinite(x)));
  const end = Math.min(last, Math.max(now + 60, ...list.map((x) => (Number.isFinite(x.to) ? now + 2 * (x.to - now) : now)))), wide = end - now;
  const x = (t: number) => Math.min(Math.max(((t - now) / wide) * 100, 0), 100);
  return (
    <Figure title="What is to come" says={`${many(all.length, "job")} not done${doc.jobs.length > all.length ? `, and ${doc.jobs.length - all.length} of which nothing is known yet` : ""}. A bar goes from the median start to the median end; the thin lines are where each lies in 8 of 10 cases.`}
      head={["job", "starts", "ends"]} rows={all.map((j) => [`${j.name} #${j.id}`, j.gpus.length > 0 ? "runs" : within(j.start), within(j.end)])}
    >
      <div class="coming" role="group" aria-label={list.slice(0, 20).map(({ j }) => `${j.name} #${j.id} ends ${within(j.end)}`).join("; ")}>
        {list.map(({ j, running, from, low, late, to, early, high }) => (
          <div class="future" key={j.id}>
            <a href={link("job", { id: j.id })}><bdi>{j.name.slice(0, 30)}</bdi> #{j.id}</a>
            <div>
              {Number.isFinite(from) && <span class={running ? "bar1 runs" : "bar1"} style={{ left: `${x(from)}%`, width: `max(${(Number.isFinite(to) ? x(to) : 100) - x(from)}%, 2px)`, background: pal.hues[j.id % pal.hues.length] }} />}
              {!running && Number.isFinite(low) && <span class="band" style={{ left: `${x(low)}%`, width: `${(Number.isFinite(late) ? x(late) : 100) - x(low)}%` }} />}
              {Number.isFinite(early) && <span class="band end" style={{ left: `${x(early)}%`, width: `${(Number.isFinite(high) ? x(high) : 100) - x(early)}%` }} />}
            </div>
          </div>
        ))}
      </div>
      <div class="axis coming-axis">
        {ticks(now, end, 6).map((t) => <span key={t} style={tickAt(x(t) / 100)}>{at(t)}</span>)}
      </div>
      {all.length > MOST && <p class="note">{all.length - MOST} more jobs are in the table alone.</p>}
      <AsOf doc={doc} />
      <p class="quiet">Now is {clock(board.value?.now)} by the last event.</p>
    </Figure>
  );
}
