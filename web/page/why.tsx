// Why a job stands as it does, what would change that, what may be done with it, and what it writes.

import { useEffect, useRef, useState } from "preact/hooks";
import { Act } from "./act";
import { Grid } from "./charts";
import { clock, count, many, span, trim, u } from "./format";
import { ask, board, can, events, get, may, mayAll, type Row, type Within } from "./live";
import { link } from "./state";
import { within } from "./yard";

interface Remedy {
  id: string;
  text: string;
  change: string;
  value: string;
  command?: string;
  resize?: { gpus_want: number };
  gpus: string[];
  displaces: number[];
}

interface WhyDoc {
  job: Row & { min?: number };
  unit: string;
  sentence: string;
  ahead: { id: number; name: string; gpus: number; gpus_held: number; state: string }[];
  ahead_total: number;
  ahead_gpus: number;
  start?: Within;
  end?: Within;
  draws: number;
  rests_on?: string;
  soon?: string;
  remedies: Remedy[];
  tried: number;
  hurried?: boolean;
  figures: { name: string; value: number; unit?: string; text?: string }[];
  may_be_stopped?: string;
  at_stake_s?: number;
  preempted?: { text: string; at: string; lost_s: number };
  remark?: string;
}

export function Now({ id }: { id: number }) {
  const row = board.value?.jobs.get(id), mark = row ? `${row.attempt}-${row.state}` : "";
  const [doc, setDoc] = useState<WhyDoc | null>(null), [error, setError] = useState(""), [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let over = false;
    get<WhyDoc>(`/v1/jobs/${id}/why`, stop.signal).then((d) => { if (!over) { setDoc(d); setError(""); } }, (e: Error) => { if (!over) setError(e.message); });
    const timer = setTimeout(() => setRound(round + 1), 15000); // forecasts move with time
    return () => {
      over = true;
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, mark, round, board.value?.tiles.waiting, board.value?.tiles.running]);
  if (!doc) return error ? <p class="warn">{error}</p> : <p class="note">Asking why…</p>;
  const job = row ?? doc.job, done = job.state === "done";
  return (
    <>
      <section id="why" aria-label="Why">
        <p class="lead"><bdi>{job.name || "Job"}</bdi> #{id} <b id="state">{done ? job.outcome : job.state}</b>{doc.sentence === `is done: ${job.outcome}` ? "." : <>: <bdi>{doc.sentence}</bdi>.</>}</p>
        {doc.remark && <p class="note"><bdi>{doc.remark}</bdi></p>}
        {!done && (
          <p>
            {doc.start && <>Starts {within(doc.start)}. </>}
            {doc.end && <>Ends {within(doc.end)}. </>}
            {doc.draws > 0 && <span class="quiet">In 8 of 10 cases, by {doc.draws} simulated futures{doc.rests_on && <>, which rest on <bdi>{doc.rests_on}</bdi></>}.</span>}
          </p>
        )}
        {doc.preempted && <p>Lost its {doc.unit}s last at {clock(doc.preempted.at)}: <bdi>{doc.preempted.text}</bdi>{doc.preempted.lost_s > 0 && `; ${span(doc.preempted.lost_s)} of work were lost`}.</p>}
        {doc.may_be_stopped && <p class="quiet"><bdi>{doc.may_be_stopped}</bdi></p>}
      </section>
      <Buttons id={id} row={job} doc={doc} />
      {job.state === "waiting" && <Remedies id={id} row={job} doc={doc} />}
      {doc.ahead.length > 0 && (
        <section>
          <h2>Before it</h2>
          <p class="quiet">{many(doc.ahead_total, "job")}, which want{doc.ahead_total === 1 ? "s" : ""} {many(doc.ahead_gpus, doc.unit)}.</p>
          <Grid head={["job", `${doc.unit}s`, "state"]} rows={doc.ahead.map((a) => [<a href={link("job", { id: a.id })}><bdi>{a.name.slice(0, 60)}</bdi> #{a.id}</a>, count(a.gpus), a.state])} />
        </section>
      )}
      {doc.figures.length > 0 && (
        <details>
          <summary>What the system goes by</summary>
          <Grid head={["figure", "value"]} rows={doc.figures.map((f) => [f.name, f.text || `${trim(f.value, 5)} ${f.unit ?? ""}`])} />
        </details>
      )}
      {can("logs") && job.attempt > 0 && <Output id={id} attempt={job.attempt} />}
    </>
  );
}

const tagOf = (r: Row) => `"${r.attempt}-${r.state}-${r.gpus_min}-${r.gpus_want}-${r.gpus_max}"`;

/** Buttons are the verbs that fit how the job stands, for who may use them. */
function Buttons({ id, row, doc }: { id: number; row: Row; doc: WhyDoc }) {
  if (row.state === "done" || !may(row.user)) return null;
  const holds = row.gpus.length > 0, about = `${row.name || "job"} #${id}`;
  const stake = doc.at_stake_s ? `${span(doc.at_stake_s)} of its work since the last save are lost.` : holds ? "Work since its last save is lost." : "It has not started: no work is lost.";
  const gains = holds ? `${many(row.gpus.length, doc.unit)} become${row.gpus.length === 1 ? "s" : ""} free for others.` : undefined;
  const list: { verb: string; loses: string; gains?: string }[] = [];
  if (row.state === "held") list.push({ verb: "resume", loses: u`It waits for GPUs again.` });
  else list.push({ verb: "pause", loses: `${stake} It waits until it is resumed.`, gains });
  if (holds) list.push({ verb: "requeue", loses: `${stake} It waits for another attempt.`, gains });
  list.push({ verb: "cancel", loses: `${stake} It ends for good.`, gains });
  return (
    <div class="bar" id="actions">
      {list.filter((v) => can(v.verb)).map((v) => (
        <Act key={v.verb} verb={v.verb} path={`/v1/jobs/${encodeURIComponent(row.ref)}/${v.verb}`} about={about} loses={v.loses} gains={v.gains}
          command={`trainyard ${v.verb} ${row.ref}`} tag={tagOf(row)} />
      ))}
      {can("resize") && <Resize row={row} about={about} stake={stake} unit={doc.unit} />}
      {can("priority") && <Priority row={row} about={about} />}
    </div>
  );
}

function Resize({ row, about, stake, unit }: { row: Row; about: string; stake: string; unit: string }) {
  const [least, setLeast] = useState(row.gpus_min), [most, setMost] = useState(row.gpus_max);
  const good = Number.isInteger(least) && Number.isInteger(most) && least >= 1 && most >= least;
  return (
    <span class="resize">
      <label>{unit}s from <input type="number" min={1} value={least} onInput={(e) => setLeast(e.currentTarget.valueAsNumber)} /></label>
      <label> to <input type="number" min={1} value={most} onInput={(e) => setMost(e.currentTarget.valueAsNumber)} /></label>
      {good && (least !== row.gpus_min || most !== row.gpus_max)
        ? <Act verb="resize" path={`/v1/jobs/${encodeURIComponent(row.ref)}/resize`} about={about} command={`trainyard resize ${row.ref} --gpus ${least === most ? least : `${least}-${most}`}`}
            loses={`If its width changes: ${stake}`} tag={tagOf(row)} body={{ gpus_min: least, gpus_want: most, gpus_max: most }} />
        : null}
    </span>
  );
}

function Priority({ row, about }: { row: Row; about: string }) {
  const was = row.priority ?? 0, [now, setNow] = useState(was);
  return (
    <span class="resize">
      <label>priority <input type="number" step={1} value={now} onInput={(e) => setNow(e.currentTarget.valueAsNumber)} /></label>
      {Number.isInteger(now) && now !== was
        ? <Act verb="priority" path={`/v1/jobs/${encodeURIComponent(row.ref)}/priority`} about={about} command={`trainyard priority ${row.ref}${now < 0 ? " --" : ""} ${now}`}
            loses={`Its priority is ${was}, and becomes ${now}. Of jobs that wait those of a larger one are served first, under every system.`} tag={tagOf(row)} body={{ priority: now }} />
        : null}
    </span>
  );
}

function Remedies({ id, row, doc }: { id: number; row: Row; doc: WhyDoc }) {
  const name = (other: number) => `${board.value?.jobs.get(other)?.name ?? "job"} #${other}`;
  return (
    <section id="remedies">
      <h2>What would start it now</h2>
      {doc.remedies.length === 0 && <p class="note">{doc.tried > 0 ? `None of ${doc.tried} changes that were tried on a copy.` : "Nothing was tried."}{doc.hurried && " The time was over before all were tried."}</p>}
      <ul>
        {doc.remedies.map((r, i) => {
          const other = r.change === "requeue" ? Number(r.value) : -1, target = other >= 0 ? board.value?.jobs.get(other) : row;
          const allowed = can("remedy") && may(row.user) && (other >= 0 ? may(target?.user) : r.change === "undrain" ? mayAll() : !!r.resize);
          const takes = r.displaces.length > 0 ? u`Takes GPUs from ${r.displaces.map(name).join(", ")}.` : u`Takes GPUs from no one.`;
          return (
            <li key={i}>
              <bdi>{r.text}</bdi>{" "}
              {allowed && (
                <Act verb="remedy" label={other >= 0 ? `requeue ${name(other)}` : r.change === "undrain" ? `undrain ${r.value}` : r.resize?.gpus_want ? `resize to ${many(r.resize.gpus_want, doc.unit)}` : `resize to ${r.value}`} about={`${row.name || "job"} #${id}`}
                  path={`/v1/jobs/${encodeURIComponent(row.ref)}/remedy`} body={{ id: r.id }}
                  command={r.command ?? ""} loses={takes} gains={`${row.name || "The job"} starts on ${r.gpus.join(" ")}, as tried on a copy. It is tried again first.`} tag={tagOf(row)} />
              )}
              {!allowed && r.command && <code>{r.command}</code>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const KEPT = 60000;

/** Output follows what an attempt writes, while it is open. */
function Output({ id, attempt }: { id: number; attempt: number }) {
  const [open, setOpen] = useState(false), [text, setText] = useState(""), [end, setEnd] = useState("");
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (!open) return;
    const stop = new AbortController();
    setText("");
    setEnd("");
    const hidden = () => { if (document.hidden) setOpen(false); };
    document.addEventListener("visibilitychange", hidden); // a hidden tab holds no stream
    ask(`/v1/jobs/${id}/logs?follow=true&tail=200`, { signal: stop.signal, stream: true })
      .then((answer) => events(answer, (kind, data) => {
        const doc = JSON.parse(data) as { text?: string; state?: string; outcome?: string; detail?: string };
        if (kind === "output") setText((t) => (t + (doc.text ?? "")).slice(-KEPT));
        else setEnd(doc.detail ?? doc.outcome ?? doc.state ?? kind);
      }))
      .catch((e: Error) => { if (!stop.signal.aborted) setEnd(e.message); });
    return () => {
      stop.abort();
      document.removeEventListener("visibilitychange", hidden);
    };
  }, [open, id, attempt]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <section>
      <h2>Output</h2>
      <button aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "hide" : "follow"}</button>
      {open && <pre ref={box} class="output" tabIndex={0} aria-label="output"><bdi>{text || "(nothing so far)"}</bdi></pre>}
      {end && <p class="quiet"><bdi>{end}</bdi></p>}
    </section>
  );
}
