// One job: what it was, and its life as a strip of waits and attempts.

import { Figure, Grid } from "./charts";
import { at, count, held, many, span, trim, u } from "./format";
import { stateOf } from "./filter";
import type { Gantt, Report, System } from "./model";
import { MIGRATED, NO_START, RESIZED, SHARED } from "./model";
import { light, night } from "./palette";
import { attemptsOf, splitOf } from "./split";
import { chosen, dark, link, live, place } from "./state";
import { SystemChoice } from "./time";
import { board } from "./live";
import { Now } from "./why";

interface Piece {
  kind: "wait" | "start" | "work" | "redone" | "stop";
  from: number;
  to: number;
  text: string;
}

/** stopOf says why an attempt lost what it held, by whom, and what was lost; "" of one that ended by itself. */
function stopOf(r: Report, g: Gantt, i: number): string {
  const a = g.attempts, reason = r.head.reasons[a.reason[i]], outcome = r.head.outcomes[a.outcome[i]];
  if (a.live[i] || outcome === "finished") return "";
  const words = reason && a.other[i] >= 0 ? `${reason} by ${nameOf(r, a.other[i])}` : outcome || reason || "stopped";
  return `${words}, ${a.stop[i] > a.kept[i] ? `${span(a.stop[i] - a.kept[i])} of work` : "no work"} lost`;
}

/** nameOf names another job, with its number where jobs are known by number. */
export function nameOf(r: Report, job: number): string {
  const name = (r.jobs.name[job] ?? "").slice(0, 60);
  return live ? `${name} #${job}` : name || `job ${job}`;
}

/** longestWait says how long a job waited at a stretch, and after what. */
export function longestWait(r: Report, s: System, job: number): string {
  const longest = piecesOf(r, s, job).filter((p) => p.kind === "wait").sort((a, b) => b.to - b.from - (a.to - a.from))[0];
  return longest ? `${span(longest.to - longest.from)}${longest.text ? `, ${longest.text}` : ", from submit"}` : "–";
}

/** piecesOf cuts the life of a job: each wait, with what came before it, and each attempt into its phases. */
export function piecesOf(r: Report, s: System, job: number): Piece[] {
  const g = s.gantt, out: Piece[] = [];
  if (!g) return out;
  const a = g.attempts;
  let last = r.jobs.submit[job], after = "";
  const add = (kind: Piece["kind"], from: number, to: number, text: string) => {
    if (to > from) out.push({ kind, from, to, text });
  };
  for (const i of attemptsOf(g, job)) {
    add("wait", last, a.start[i], after);
    const work = a.work[i] >= 0 ? Math.min(a.work[i], a.stop[i]) : a.stop[i], kept = Math.max(a.kept[i], work);
    add("start", a.start[i], work, "");
    add("work", work, kept, many(a.width[i], held()));
    add("redone", kept, a.stop[i], "lost");
    add("stop", a.stop[i], a.end[i], "");
    last = a.end[i];
    after = stopOf(r, g, i);
  }
  const done = r.head.outcomes[s.outcomes.outcome[job]] !== "";
  add("wait", last, done ? s.outcomes.finish[job] : r.to, after);
  return out;
}

/** textOf says what a piece is. */
const textOf = (p: Piece) => names[p.kind] + (p.kind === "work" ? ` on ${p.text}` : p.kind === "wait" && p.text ? `: ${p.text}` : "");

const names = { wait: "waits", start: "comes up", work: "works", redone: "work that was lost", stop: "stops" };

/** JobNow is a job of a host that keeps no history: how it stands. */
export function JobNow() {
  const id = Number(place.value.args.id ?? -1), row = board.value?.jobs.get(id);
  return (
    <>
      <h1>Job <bdi>{row?.name.slice(0, 200) ?? ""}</bdi> #{place.value.args.id ?? ""}</h1>
      <Now id={id} />
      <p class="note">This host keeps no history: its attempts so far are not known here.</p>
    </>
  );
}

export function Job({ report }: { report: Report }) {
  const id = Number(place.value.args.id ?? -1), system = report.systems[chosen.value] ?? report.systems[0];
  if (!(id >= 0 && id < report.jobs.n)) return <p class="warn">There is no job {place.value.args.id ?? ""} here; it has jobs 0 to {report.jobs.n - 1}.</p>;
  const j = report.jobs, split = splitOf(report, system, id), range = j.fewest[id] === j.most[id] ? "" : `, ${j.fewest[id]} to ${j.most[id]} allowed`;
  const o = system.outcomes;
  // Those with a number of their own have a name, too.
  const facts: [string, string, string?, number?][] = [
    ["state", live ? "" : stateOf(report, system, id)], ["user", j.user[id]], ["model", j.model[id]], ["class", j.class[id]],
    [u`GPUs`, `${j.gpus[id]} asked for${range}`, "gpus", j.gpus[id]], ["submitted", at(j.submit[id]), "submit", j.submit[id]],
    ["deadline", j.deadline[id] > 0 ? at(j.deadline[id]) : ""], ["finished", at(system.outcomes.finish[id])],
    ["JCT", span(split.jct), "jct", split.jct], ["waited", span(split.queue), "wait", split.queue], ["starts, stops", span(split.restarts)], ["redone", span(split.redone)],
    ["worked", span(split.work)], [u`GPU-hours`, trim(o.service[id] / 3600, 4), "gpu_hours", o.service[id] / 3600],
    ["preempted", live && o.preemptions[id] === 0 ? "" : many(o.preemptions[id], "time"), "preemptions", o.preemptions[id]],
    ["stops for others", system.outcomes.lost[id] > 0 ? u`cost ${trim(system.outcomes.lost[id] / 3600, 3)} GPU-hours, with the time to start and to stop` : ""],
  ];
  return (
    <>
      <h1>Job <bdi>{j.name[id].slice(0, 200) || "(no name)"}</bdi>{live && ` #${id}`}</h1>
      <SystemChoice report={report} />
      {live && <Now id={id} />}
      <dl class="facts">
        {facts.filter(([, v]) => v && v !== "–").map(([k, v, fact, x]) => [<dt key={k}>{k}</dt>, <dd key={k + "."} data-fact={fact} data-value={x}><bdi>{v}</bdi></dd>])}
      </dl>
      <Strip report={report} system={system} id={id} />
      {report.systems.length > 1 && <Others report={report} id={id} />}
      {system.gantt && attemptsOf(system.gantt, id).length > 0 && <Attempts report={report} gantt={system.gantt} id={id} />}
    </>
  );
}

function Strip({ report, system, id }: { report: Report; system: System; id: number }) {
  const pieces = piecesOf(report, system, id), pal = dark.value ? night : light;
  if (pieces.length === 0) return <p class="note">Its attempts are not known here.</p>;
  const from = pieces[0].from, all = pieces[pieces.length - 1].to - from;
  const waits = pieces.filter((p) => p.kind === "wait"), longest = Math.max(0, ...waits.map((p) => p.to - p.from));
  const stops = waits.filter((p) => p.text);
  const hue = { wait: "transparent", start: pal.hues[2], work: pal.hues[0], redone: pal.hues[1], stop: pal.hues[3] };
  return (
    <Figure
      title="Its life" says={`${waits.length === 0 ? "No wait" : waits.length === 1 ? `One wait, of ${span(longest)}` : `${count(waits.length)} waits, the longest of ${span(longest)}`}; ${span(all)} from submit to ` +
        `${report.head.outcomes[system.outcomes.outcome[id]] || (report.now === undefined ? "the end of the run" : "now")}.`}
      head={["what", "from", "for"]} rows={pieces.map((p) => [textOf(p), at(p.from), span(p.to - p.from)])}
    >
      <div class="strip" role="img" aria-label={pieces.slice(0, 60).map((p) => `${textOf(p)} for ${span(p.to - p.from)}`).join(", ")}>
        {pieces.map((p, n) => (
          <span key={n} class={p.kind} title={`${textOf(p)} for ${span(p.to - p.from)}, from ${at(p.from)}`}
            style={{ left: `${((p.from - from) / all) * 100}%`, width: `max(${((p.to - p.from) / all) * 100}%, 1px)`, background: hue[p.kind] }}>
            {(p.to - p.from) / all > 0.06 && <b>{p.kind === "work" ? p.text : p.kind === "wait" ? span(p.to - p.from) : ""}</b>}
          </span>
        ))}
      </div>
      {stops.length > 0 && (
        <ul class="stops" id="stops">
          {stops.slice(0, 20).map((p) => <li key={p.from}><span class="quiet">{at(p.from)}</span> <bdi>{p.text}</bdi>, then waited {span(p.to - p.from)}</li>)}
          {stops.length > 20 && <li class="quiet">{count(stops.length - 20)} more are in the table.</li>}
        </ul>
      )}
      <ul class="legend">
        {(Object.keys(names) as Piece["kind"][]).map((k) => <li key={k}><i class={k} style={{ background: hue[k] }} />{names[k]}</li>)}
      </ul>
    </Figure>
  );
}

function Others({ report, id }: { report: Report; id: number }) {
  return (
    <Figure title="Under each system" says="From submit to finish, and what it is made of; the parts sum to it.">
      <Grid
        head={["system", "JCT", "waiting", "starts, stops", "redone", "work", "preempted"]}
        rows={report.systems.map((s, i) => {
          const x = splitOf(report, s, id);
          return [<a href={link("job", { id, sys: i })}>{s.head.name}</a>, span(x.jct), span(x.queue), span(x.restarts), span(x.redone), span(x.work),
            count(s.outcomes.preemptions[id])];
        })}
      />
    </Figure>
  );
}

function Attempts({ report, gantt, id }: { report: Report; gantt: Gantt; id: number }) {
  const a = gantt.attempts, list = Array.from(attemptsOf(gantt, id));
  const marks = (i: number) => [[RESIZED, "resized"], [MIGRATED, "moved"], [SHARED, "shared"], [NO_START, "start failed"]]
    .filter(([bit]) => a.marks[i] & (bit as number)).map(([, w]) => w).join(", ");
  return (
    <Figure title="Its attempts" says={`${count(list.length)} attempt${list.length === 1 ? "" : "s"}.`}>
      <Grid
        head={["attempt", "from", "for", u`GPUs`, "which", "ended", "decision", "event", "by", "lost", "marks"]}
        rows={list.slice(0, 500).map((i) => [
          <a href={link("time", { sys: chosen.value, pick: i, rows: "near", t0: a.start[i] - (a.end[i] - a.start[i]) - 1, t1: a.end[i] + (a.end[i] - a.start[i]) + 1 })}>{a.number[i]}</a>,
          at(a.start[i]), span(a.end[i] - a.start[i]), count(a.width[i]), gpusOf(gantt, i),
          a.live[i] ? "under way" : report.head.outcomes[a.outcome[i]], report.head.reasons[a.reason[i]],
          a.given[i] > 0 ? <a href={link("decision", { seq: a.given[i], sys: chosen.value || undefined })}>{a.given[i]}</a> : "",
          a.other[i] >= 0 ? <a href={link("job", { id: a.other[i], sys: chosen.value })}><bdi>{report.jobs.name[a.other[i]]?.slice(0, 60)}</bdi></a> : "",
          a.stop[i] > a.kept[i] ? span(a.stop[i] - a.kept[i]) : "", marks(i),
        ])}
      />
      {list.length > 500 && <p class="note">{count(list.length - 500)} more attempts are left out.</p>}
    </Figure>
  );
}

/** gpusOf names the GPUs of an attempt: their nodes, and their numbers there. */
function gpusOf(g: Gantt, i: number): string {
  const a = g.attempts, parts: string[] = [];
  for (let r = a.firstRun[i]; r < a.firstRun[i + 1] && parts.length < 6; r++) {
    const node = g.nodes[g.nodeOfRow[g.rowOf[a.runFirst[r]]]], at = a.runFirst[r] - node.first, n = a.runCount[r];
    const whole = at === 0 && n % node.gpus === 0 && n / node.gpus;
    parts.push(whole ? (whole === 1 ? node.name : `${node.name} and ${whole - 1} more`) : `${node.name} ${n === 1 ? at : `${at}–${at + n - 1}`}`);
  }
  return parts.join("; ") + (a.firstRun[i + 1] - a.firstRun[i] > 6 ? "; …" : "");
}
