// How all stands now: GPUs, what waits and when it starts, and what has just happened.

import { useEffect, useState } from "preact/hooks";
import { Act } from "./act";
import { Figure, Grid } from "./charts";
import { clock, count, many, span, trim } from "./format";
import { board, can, get, info, mayAll, news, type Board, type Device, type JobDoc, type Row, type Within } from "./live";
import { light, night } from "./palette";
import { dark, link } from "./state";

/** usePolled asks again as the board changes, no more often than every few seconds. */
export function usePolled<T>(path: string, seq: number): T | null {
  const [doc, setDoc] = useState<T | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let over = false;
    get<T>(path, stop.signal).then((d) => { if (!over) setDoc(d); }, () => undefined);
    return () => {
      over = true;
      stop.abort();
    };
  }, [path, round]);
  useEffect(() => {
    const timer = setTimeout(() => setRound(seq), 700);
    return () => clearTimeout(timer);
  }, [seq]);
  return doc;
}

/** within says an interval in which something happens in 8 of 10 cases. */
export function within(w: Within | undefined): string {
  if (!w || !w.known) return "not known yet";
  if (!w.low && !w.high) return "not to be foreseen";
  const low = clock(w.low), high = clock(w.high);
  return low === high ? low : `${low} to ${w.high ? high : "?"}`;
}

/** AsOf says of which moment times to come are, where that is an earlier one. */
export function AsOf({ doc }: { doc: { foreseen_at?: string } | null }) {
  if (!doc?.foreseen_at) return null;
  return <p class="quiet as-of">Times to come are those foreseen at {clock(doc.foreseen_at)}: of so many jobs they are looked for less often.</p>;
}

export function Yard() {
  const b = board.value;
  if (!b) return <p class="note">Waiting for the host.</p>;
  return (
    <>
      <h1>Yard</h1>
      <TileRow b={b} />
      <GPUs b={b} />
      <Queue b={b} />
      <Running b={b} />
      <Ended b={b} />
      <News />
    </>
  );
}

function TileRow({ b }: { b: Board }) {
  const t = b.tiles, problems = info.value?.problems ?? [];
  return (
    <>
      <ul class="tiles" id="tiles">
        <li><b>{t.busy} of {t.gpus}</b> {b.unit}s busy</li>
        <li><b>{count(t.running)}</b> {t.running === 1 ? "job runs" : "jobs run"}</li>
        <li><b>{count(t.waiting)}</b> {t.waiting === 1 ? "waits" : "wait"}{t.waiting > 0 && `, for ${many(t.waiting_gpus, b.unit)}`}</li>
        <li>{t.watts ? <><b>{trim(t.watts, 3)} W</b> drawn</> : "power is not measured here"}</li>
        <li>{problems.length > 0 ? <b class="warn">{many(problems.length, "problem")}</b> : "no problem known"}</li>
      </ul>
      {problems.length > 0 && <ul class="problems">{problems.map((p) => <li key={p}>{p}</li>)}</ul>}
    </>
  );
}

/** letters mark how a GPU stands that no job may use, so that colour is not all that says it. */
const letters: Record<string, string> = { foreign: "×", stuck: "!", missing: "?", quarantined: "Q", drained: "d", forgotten: "–" };

/** MOST_NAMED is of how many GPUs each has a cell with its name; of more, cells are squares. */
const MOST_NAMED = 256;

function GPUs({ b }: { b: Board }) {
  const [picked, setPicked] = useState("");
  const byName = new Map(b.gpus.map((g) => [g.name, g]));
  const pal = dark.value ? night : light;
  const free = b.gpus.filter((g) => g.jobs.length === 0 && !letters[g.state]).length;
  const g = byName.get(picked);
  const dense = b.gpus.length > MOST_NAMED;
  const cell = (d: Device | undefined, name: string) => {
    const row = d && d.jobs.length > 0 ? b.jobs.get(d.jobs[0]) : undefined;
    const hue = d && d.jobs.length > 0 ? pal.hues[d.jobs[0] % pal.hues.length] : "var(--line)";
    const letter = d ? letters[d.state] ?? "" : "";
    const text = d && d.jobs.length > 0 ? d.jobs.map((id) => `${b.jobs.get(id)?.name ?? "job"} #${id}`).join(", ") : letter ? d!.state : "free";
    return (
      <button key={name} class={letter ? "gpu odd" : d?.jobs.length ? "gpu held" : "gpu"} aria-pressed={picked === name} title={`${name}: ${text}`} aria-label={dense ? `${name}: ${text}` : undefined}
        style={dense && !letter && d?.jobs.length ? { background: hue } : { borderLeftColor: hue }} onClick={() => setPicked(picked === name ? "" : name)}>
        {dense ? <bdi aria-hidden>{letter || "\u00a0"}</bdi> : <><small>{name}</small><bdi>{letter} {row || letter ? text.slice(0, 40) : "free"}</bdi></>}
      </button>
    );
  };
  return (
    <Figure title={b.unit === "slot" ? "Slots" : "GPUs"} says={`${many(free, b.unit)} of ${b.gpus.length} ${free === 1 ? "is" : "are"} free.`}
      head={[b.unit, "state", "jobs", "use", "memory, MB", "W"]}
      rows={b.gpus.map((d) => [d.name, d.state || "free", d.jobs.join(" ") || "–", d.use === undefined ? "–" : trim(d.use * 100, 3) + "%",
        d.of_mb ? `${trim(d.memory_mb ?? 0, 5)} of ${trim(d.of_mb, 5)}` : "–", d.watts === undefined ? "–" : trim(d.watts, 4)])}
    >
      <div class={dense ? "yard dense" : "yard"}>
        {b.nodes.map((n) => (
          <div class="node" key={n.name}>
            <span><bdi>{n.name}</bdi>{n.state !== "up" && <b> {n.state}</b>}</span>
            <div class="gpus">{n.gpus.map((name) => cell(byName.get(name), name))}</div>
          </div>
        ))}
      </div>
      {g && (
        <div class="bar" id="picked">
          <span><b>{g.name}</b>: {g.state || "free"}{g.why && <>, <bdi>{g.why}</bdi></>}{g.by && <>; used by <bdi>{g.by}</bdi></>}</span>
          {g.jobs.map((id) => <a key={id} href={link("job", { id })}>job #{id}</a>)}
          {mayAll() && can("drain-gpu") && (
            <Act verb={g.state === "drained" ? "undrain" : "drain"} path={`/v1/gpus/${encodeURIComponent(g.name)}/${g.state === "drained" ? "undrain" : "drain"}`}
              about={`${b.unit} ${g.name}`} command={`trainyard ${g.state === "drained" ? "undrain" : "drain"} ${g.name}`}
              loses={g.state === "drained" ? "Jobs may be started on it again." : "Nothing is lost: jobs on it go on, and nothing new is started there."} />
          )}
        </div>
      )}
    </Figure>
  );
}

const order = (a: JobDoc, c: JobDoc) => (c.priority ?? 0) - (a.priority ?? 0) || a.id - c.id;

function Queue({ b }: { b: Board }) {
  const rows = [...b.jobs.values()].filter((r) => r.state === "waiting" || r.state === "held");
  const doc = usePolled<{ jobs: JobDoc[]; foreseen_at?: string }>("/v1/jobs?state=waiting,held&ahead_ms=-1", b.seq);
  const known = new Map((doc?.jobs ?? []).map((j) => [j.id, j]));
  const list = rows.map((r) => ({ ...known.get(r.id), ...r }) as JobDoc);
  list.sort((x, y) => (Date.parse(x.start?.median ?? "") || Infinity) - (Date.parse(y.start?.median ?? "") || Infinity) || order(x, y));
  return (
    <section>
      <h2>Queue</h2>
      {list.length === 0
        ? <p class="note">No job waits.</p>
        : <Grid id="queue" head={["job", `${b.unit}s`, "waits since", "starts, in 8 of 10 cases", "why"]}
            rows={list.slice(0, 100).map((j) => [
              <Name r={j} />, j.gpus_min === j.gpus_max ? count(j.gpus_want) : `${j.gpus_min}–${j.gpus_max}`, clock(j.submitted),
              j.state === "held" ? "–" : doc ? within(j.start) : "…", <span class="why"><bdi>{j.why ?? ""}</bdi> <a href={link("job", { id: j.id })}>why?</a></span>,
            ])} />}
      {list.length > 100 && <p class="note">{count(list.length - 100)} more jobs wait.</p>}
      <AsOf doc={doc} />
    </section>
  );
}

export function Name({ r }: { r: Row }) {
  return <a href={link("job", { id: r.id })}><bdi>{r.name.slice(0, 60) || "(no name)"}</bdi> #{r.id}</a>;
}

function Running({ b }: { b: Board }) {
  const rows = [...b.jobs.values()].filter((r) => !["waiting", "held", "done"].includes(r.state));
  const doc = usePolled<{ jobs: JobDoc[] }>("/v1/jobs?state=starting,running,stopping&ahead_ms=-1", b.seq);
  const known = new Map((doc?.jobs ?? []).map((j) => [j.id, j]));
  return (
    <section>
      <h2>On {b.unit}s</h2>
      {rows.length === 0
        ? <p class="note">No job runs.</p>
        : <Grid id="running" head={["job", "state", `${b.unit}s`, "since", "attempt", "steps", "ends, in 8 of 10 cases"]}
            rows={rows.slice(0, 100).map((r) => {
              const j = known.get(r.id);
              return [<Name r={r} />, r.state, <bdi>{r.gpus.length > 4 ? `${r.gpus.length}` : r.gpus.join(" ")}</bdi>, clock(r.started), count(r.attempt),
                j?.step ? count(j.step) + (j.total ? ` of ${count(j.total)}` : "") : "–", doc ? within(j?.end) : "…"];
            })} />}
      {rows.length > 100 && <p class="note">{count(rows.length - 100)} more jobs run.</p>}
    </section>
  );
}

function Ended({ b }: { b: Board }) {
  const rows = [...b.jobs.values()].filter((r) => r.state === "done").sort((x, y) => Date.parse(y.ended ?? "") - Date.parse(x.ended ?? "") || y.id - x.id);
  if (rows.length === 0) return null;
  return (
    <section>
      <h2>Done last</h2>
      <Grid id="done" head={["job", "outcome", "ended", "took", "preempted"]}
        rows={rows.slice(0, 8).map((r) => [<Name r={r} />, r.outcome ?? "", clock(r.ended), span((Date.parse(r.ended ?? "") - Date.parse(r.submitted)) / 1000),
          count(r.preemptions)])} />
    </section>
  );
}

function News() {
  if (news.value.length === 0) return null;
  return (
    <section>
      <h2>What has just happened</h2>
      <ul class="news">
        {news.value.map((n, i) => <li key={i}><small>{clock(n.at)}</small> <a href={link("job", { id: n.id })}><bdi>{n.text.slice(0, 120)}</bdi></a></li>)}
      </ul>
    </section>
  );
}
