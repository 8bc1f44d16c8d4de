// One decision: what was free, who waited, in order, what was chosen and what refused. A file knows what came of it; the
// host whose log it is decides it again.

import { useEffect, useState } from "preact/hooks";
import { Grid } from "./charts";
import { at, clock, count, held, many, span, title, trim, u } from "./format";
import { board, can, get } from "./live";
import type { Gantt, Report, System } from "./model";
import { change, chosen, link, live, place } from "./state";
import { NoGPUs, SystemChoice } from "./time";

interface Reason {
  code: string;
  job: number;
  text: string;
}

interface Chosen {
  job: number;
  name: string;
  gpus: string[];
  reason: Reason;
  text?: string;
}

interface Doc {
  seq: number;
  event: string;
  at: string;
  system: string;
  job: number;
  name: string;
  sentence: string;
  was: string[];
  gpus: string[];
  free: string[];
  waited: { id: number; name: string; gpus: number }[];
  ordered: boolean;
  reason: Reason;
  chosen: Chosen[];
  refused: Chosen[];
  figures: { name: string; value: number; unit?: string; text?: string }[];
}

/** MOST is how many GPUs are drawn, LISTED how many rows a list has. */
const MOST = 2048, LISTED = 100;

export function Decision({ report }: { report: Report }) {
  const system = report.systems[chosen.value] ?? report.systems[0], text = place.value.args.seq ?? "", seq = Number(text);
  const known = Number.isSafeInteger(seq) && seq > 0;
  return (
    <>
      <h1>Decision{known && ` ${seq}`}</h1>
      <SystemChoice report={report} />
      <Which />
      {text && !known && <p class="warn">“<bdi>{text.slice(0, 60)}</bdi>” is no number of an event, want one from 1 on.</p>}
      {!system.gantt ? <NoGPUs system={system} /> : !known ? <Latest report={report} gantt={system.gantt} />
        : live ? <Again seq={seq} /> : <Recorded report={report} system={system} gantt={system.gantt} seq={seq} />}
    </>
  );
}

function Which() {
  const [text, setText] = useState(place.value.args.seq ?? "");
  useEffect(() => setText(place.value.args.seq ?? ""), [place.value.args.seq]);
  return (
    <form class="bar" onSubmit={(e) => { e.preventDefault(); change({ seq: text.trim() || undefined }); }}>
      <label>event <input id="seq" inputMode="numeric" size={8} value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
      <button type="submit">show</button>
      {place.value.args.seq && <a href={link("decision", { sys: chosen.value || undefined })}>latest decisions</a>}
    </form>
  );
}

/** Latest lists the decisions by which the latest attempts came about. */
function Latest({ report, gantt }: { report: Report; gantt: Gantt }) {
  const a = gantt.attempts, list: number[] = [];
  for (let i = a.n - 1; i >= 0 && list.length < LISTED; i--) if (a.given[i] > 0) list.push(i);
  if (list.length === 0) return <p class="note">No decision is known.</p>;
  return (
    <>
      <p>The latest by which jobs got {held()}s. <code>trainyard events</code> shows all events with their numbers.</p>
      <Grid id="decisions" head={["event", "at", "job", u`GPUs`, "then"]}
        rows={list.map((i) => [
          <a href={link("decision", { seq: a.given[i], sys: chosen.value || undefined })}>{a.given[i]}</a>, at(a.start[i]),
          <a href={link("job", { id: a.job[i], sys: chosen.value })}><bdi>{report.jobs.name[a.job[i]].slice(0, 60) || "(no name)"}</bdi></a>, count(a.width[i]),
          a.live[i] ? "under way" : report.head.outcomes[a.outcome[i]],
        ])} />
    </>
  );
}

type Cell = { name: string; state: "free" | "chosen" | "left" | "held" | "closed"; text: string };

const letters = { free: "·", chosen: "✓", left: "−", held: "▪", closed: "×" };
const meanings = { free: "free, and not taken", chosen: "given to the job", left: "taken from it", held: "held by others", closed: "to be given to no job" };

/** Cells draws GPUs by node. */
function Cells({ nodes }: { nodes: { name: string; cells: Cell[] }[] }) {
  const all = nodes.flatMap((n) => n.cells), n = (s: Cell["state"]) => all.filter((c) => c.state === s).length;
  const states = (["chosen", "free", "left", "held", "closed"] as const).filter((s) => n(s) > 0);
  let left = MOST;
  return (
    <figure>
      <figcaption>
        <h2>{title(u`GPUs then`)}</h2>
        <p id="drawn" data-free={n("free") + n("chosen")} data-chosen={n("chosen")}>{states.map((s) => `${count(n(s))} ${meanings[s]}`).join("; ")}.</p>
      </figcaption>
      <div class="cells" role="img" aria-label={states.map((s) => `${n(s)} ${meanings[s]}`).join(", ")}>
        {nodes.map((node) => {
          const cells = node.cells.slice(0, Math.max(left, 0));
          left -= node.cells.length;
          return cells.length > 0 && (
            <div key={node.name}><span><bdi>{node.name.slice(0, 40)}</bdi></span><div>{cells.map((c) => <i key={c.name} class={c.state} title={`${c.name}: ${c.text}`}>{letters[c.state]}</i>)}</div></div>
          );
        })}
      </div>
      {all.length > MOST && <p class="note">{count(all.length - MOST)} more are not drawn.</p>}
      <ul class="legend">{states.map((s) => <li key={s}><b>{letters[s]}</b> {meanings[s]}</li>)}</ul>
    </figure>
  );
}

const Name = ({ id, name }: { id: number; name: string }) => <a href={link("job", { id, sys: chosen.value || undefined })}><bdi>{name.slice(0, 60) || "(no name)"}</bdi> #{id}</a>;

/** Again is a decision of a live host, decided again there. */
function Again({ seq }: { seq: number }) {
  const [doc, setDoc] = useState<Doc | null>(null), [error, setError] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    setDoc(null);
    setError("");
    get<Doc>(`/v1/decisions/${seq}`, stop.signal).then(setDoc, (e: Error) => { if (!stop.signal.aborted) setError(e.message); });
    return () => stop.abort();
  }, [seq]);
  if (!can("explain")) return <p class="note">This host keeps too little of its log to decide again.</p>;
  if (!doc) return error ? <p class="warn" role="alert"><bdi>{error}</bdi></p> : <p class="note">Decides it again…</p>;
  const is = (list: string[]) => new Set(list), free = is(doc.free), now = is(doc.gpus), was = is(doc.was);
  const closed = new Map((board.value?.gpus ?? []).filter((g) => g.state && g.state !== "busy" && g.state !== "free").map((g) => [g.name, g.state]));
  const cell = (name: string): Cell => {
    const state = now.has(name) ? "chosen" : was.has(name) ? "left" : free.has(name) ? "free" : closed.has(name) && !free.has(name) ? "closed" : "held";
    return { name, state, text: state === "closed" ? closed.get(name)! : meanings[state] };
  };
  return (
    <>
      <p class="lead" id="sentence"><bdi>{doc.sentence}</bdi>.</p>
      <p class="quiet">{clock(doc.at)}, by <bdi>{doc.system}</bdi>; the same by <code>trainyard explain {doc.seq}</code></p>
      <Cells nodes={(board.value?.nodes ?? []).map((n) => ({ name: n.name, cells: n.gpus.map(cell) }))} />
      <section>
        <h2>Who waited</h2>
        {doc.waited.length === 0 ? <p class="note">No other job waited.</p>
          : <Grid id="waited" head={[doc.ordered ? "in this order" : "in no order", u`GPUs`, "came to"]} rows={doc.waited.slice(0, LISTED).map((w) => [
              <Name id={w.id} name={w.name} />, count(w.gpus), doc.chosen.some((c) => c.job === w.id && c.gpus.length > 0) ? "chosen" : doc.refused.some((c) => c.job === w.id) ? "refused" : "waits on",
            ])} />}
        {doc.waited.length > LISTED && <p class="note">{count(doc.waited.length - LISTED)} more waited.</p>}
      </section>
      <Picks id="chosen" name="Chosen" list={doc.chosen} none="Nothing." />
      <Picks id="refused" name="Refused" list={doc.refused} none="Nothing was refused." />
      {doc.figures.length > 0 && (
        <section>
          <h2>What the system went by</h2>
          <Grid id="figures" head={["figure", "value"]} rows={doc.figures.map((f) => [f.name, f.text || `${trim(f.value, 5)} ${(f.unit ?? "").replace("GPU", held())}`])} />
        </section>
      )}
    </>
  );
}

function Picks({ id, name, list, none }: { id: string; name: string; list: Chosen[]; none: string }) {
  return (
    <section>
      <h2>{name}</h2>
      {list.length === 0 ? <p class="note">{none}</p> : <Grid id={id} label={`Jobs: ${id}`} head={["job", u`GPUs`, "reason"]} rows={list.slice(0, LISTED).map((c) => [
        <Name id={c.job} name={c.name} />, c.gpus.length > 8 ? count(c.gpus.length) : c.gpus.join(" ") || "none: all are taken away", <bdi>{c.text || c.reason.text || c.reason.code}</bdi>,
      ])} />}
      {list.length > LISTED && <p class="note">{count(list.length - LISTED)} more.</p>}
    </section>
  );
}

/** Recorded is a decision as a file has it: what came of it, and how things stood when its GPUs were ordered. */
function Recorded({ report, system, gantt, seq }: { report: Report; system: System; gantt: Gantt; seq: number }) {
  const a = gantt.attempts, i = a.given.findIndex((s) => s === seq);
  if (i < 0) return <p class="warn">No attempt here came of event {seq}. The latest decisions are listed without a number.</p>;
  const job = a.job[i], t = a.start[i], same: number[] = [], on = new Map<number, number>(), before = new Map<number, number>();
  for (let k = 0; k < a.n; k++) {
    if (a.start[k] === t) same.push(k);
    if (a.start[k] > t || (a.end[k] <= t && a.start[k] < t)) continue;
    for (let r = a.firstRun[k]; r < a.firstRun[k + 1]; r++) {
      for (let g = a.runFirst[r]; g < a.runFirst[r] + a.runCount[r]; g++) (k === i || a.start[k] < t ? on : before).set(g, k);
    }
  }
  const closed = new Set<number>(), s = gantt.spells;
  for (let k = 0; k < s.n; k++) if (s.from[k] <= t && t < s.to[k]) for (let g = 0; g < s.count[k]; g++) closed.add(s.first[k] + g);
  const cell = (g: number, name: string): Cell => {
    const k = on.get(g) ?? before.get(g);
    if (k === i) return { name, state: "chosen", text: meanings.chosen };
    if (k !== undefined) return { name, state: "held", text: report.jobs.name[a.job[k]].slice(0, 60) };
    return closed.has(g) ? { name, state: "closed", text: meanings.closed } : { name, state: "free", text: meanings.free };
  };
  const nodes = gantt.nodes.map((n) => ({ name: n.name, cells: Array.from({ length: n.gpus }, (_, g) => cell(n.first + g, `${n.name} ${g}`)) }));
  const waited = waiting(report, system, gantt, t), why = report.head.reasons[a.reason[i]];
  const others = same.filter((k) => k !== i);
  return (
    <>
      <p class="lead" id="sentence"><Name id={job} name={report.jobs.name[job]} /> got {many(a.width[i], held())} at {at(t)}, for its attempt {a.number[i]}.</p>
      <p>
        {a.live[i] ? <>Reason: <b id="reason">{why}</b>.</> : <>The attempt took {span(a.end[i] - a.start[i])} and came to: {report.head.outcomes[a.outcome[i]]}. The last reason about it is <b id="reason">{why}</b>.</>}
        {a.other[i] >= 0 && <> It has to do with <Name id={a.other[i]} name={report.jobs.name[a.other[i]]} />.</>}
      </p>
      <p class="quiet">This file has what came of decisions. On the host whose log it is, this decides it again, with who waited in its order, what was refused and the figures:</p>
      <Copy text={`trainyard explain ${seq}`} />
      <Cells nodes={nodes} />
      <section>
        <h2>Who waited</h2>
        {waited.length === 0 ? <p class="note">No job waited but those that got {held()}s at this instant.</p>
          : <Grid id="waited" head={["in order of submission", u`GPUs`, "since"]} rows={waited.slice(0, LISTED).map((j) => [<Name id={j} name={report.jobs.name[j]} />, count(report.jobs.gpus[j]), at(report.jobs.submit[j])])} />}
        {waited.length > LISTED && <p class="note">{count(waited.length - LISTED)} more waited.</p>}
      </section>
      {others.length > 0 && (
        <section>
          <h2>At the same instant</h2>
          <Grid id="chosen" head={["job", u`GPUs`, "event"]} rows={others.slice(0, LISTED).map((k) => [
            <Name id={a.job[k]} name={report.jobs.name[a.job[k]]} />, count(a.width[k]), a.given[k] > 0 ? <a href={link("decision", { seq: a.given[k], sys: chosen.value || undefined })}>{a.given[k]}</a> : "–",
          ])} />
        </section>
      )}
    </>
  );
}

/** waiting lists the jobs that held nothing at a time, were submitted by then, and were not over. */
function waiting(report: Report, system: System, g: Gantt, t: number): number[] {
  const a = g.attempts, out: number[] = [];
  for (let j = 0; j < report.jobs.n; j++) {
    const over = report.head.outcomes[system.outcomes.outcome[j]] !== "" && system.outcomes.finish[j] <= t;
    if (report.jobs.submit[j] > t || over) continue;
    let holds = false;
    for (let k = g.ofJob[j]; k < g.ofJob[j + 1] && !holds; k++) {
      const i = g.byJob[k];
      holds = a.start[i] <= t && (t < a.end[i] || a.start[i] === t);
    }
    if (!holds) out.push(j);
  }
  return out;
}

/** Copy is a command, and a button that copies it. */
function Copy({ text }: { text: string }) {
  const [said, setSaid] = useState("copy");
  const copy = () => {
    navigator.clipboard?.writeText(text).then(() => setSaid("copied"), () => setSaid("select it by hand")) ?? setSaid("select it by hand");
  };
  return <div class="bar"><code class="command" id="explain">{text}</code><button onClick={copy}>{said}</button></div>;
}
