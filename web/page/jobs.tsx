// All jobs: only the rows that are seen are built.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { at, count, held, span, trim } from "./format";
import { numberOf, parse, stateOf } from "./filter";
import type { Report, System } from "./model";
import { change, chosen, go, link, place } from "./state";
import { SystemChoice } from "./time";

const ROW = 28;

interface Column {
  key: string;
  name: string;
  text: (r: Report, s: System, j: number) => string;
  value: (r: Report, s: System, j: number) => number | string;
  wide: string;
}

const figure = (key: string, name: string, text: (x: number) => string): Column => ({
  key, name, wide: "minmax(92px, 1fr)", text: (r, s, j) => text(numberOf(r, s, j, key)), value: (r, s, j) => numberOf(r, s, j, key),
});

const columns: Column[] = [
  { key: "name", name: "job", wide: "minmax(130px, 2fr)", text: (r, _s, j) => r.jobs.name[j], value: (r, _s, j) => r.jobs.name[j] },
  { key: "user", name: "user", wide: "minmax(70px, 1fr)", text: (r, _s, j) => r.jobs.user[j], value: (r, _s, j) => r.jobs.user[j] },
  { key: "model", name: "model", wide: "minmax(80px, 1fr)", text: (r, _s, j) => r.jobs.model[j], value: (r, _s, j) => r.jobs.model[j] },
  figure("gpus", "GPUs", count),
  figure("submit", "submitted", at),
  figure("wait", "wait", span),
  figure("run", "run", span),
  figure("jct", "JCT", span),
  figure("preempted", "preempted", count),
  figure("lost", "lost, GPU-s", (x) => trim(x, 4)),
  { key: "state", name: "state", wide: "minmax(80px, 1fr)", text: stateOf, value: stateOf },
];

function sorted(list: number[], c: Column, down: boolean, r: Report, s: System): number[] {
  const order = Uint32Array.from(list.keys()), sign = down ? -1 : 1;
  if (list.length > 0 && typeof c.value(r, s, list[0]) === "number") {
    const keys = Float64Array.from(list, (j) => {
      const x = c.value(r, s, j) as number;
      return Number.isNaN(x) ? Infinity : sign * x; // what is not known comes last
    });
    order.sort((a, b) => keys[a] - keys[b] || a - b); // NaN of two infinite ones, too
  } else {
    const words = list.map((j) => c.value(r, s, j));
    order.sort((a, b) => sign * (words[a] < words[b] ? -1 : words[a] > words[b] ? 1 : 0) || a - b);
  }
  return Array.from(order, (i) => list[i]);
}

export function Jobs({ report }: { report: Report }) {
  const system = report.systems[chosen.value] ?? report.systems[0], args = place.value.args;
  const q = args.q ?? "", sort = columns.find((c) => c.key === args.sort), down = args.down === "1";
  const shown = useMemo(() => columns.filter((c) => !["user", "model"].includes(c.key) || (c.key === "user" ? report.jobs.user : report.jobs.model).some((x) => x)), [report]);
  const list = useMemo(() => {
    const test = parse(q, report, system), out: number[] = [];
    for (let j = 0; j < report.jobs.n; j++) if (test(j)) out.push(j);
    return sort ? sorted(out, sort, down, report, system) : out;
  }, [q, sort, down, system, report]);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0), [cursor, setCursor] = useState(0);
  const height = Math.min(Math.max(innerHeight - 260, 240), Math.max(list.length, 3) * ROW + 2);
  const first = Math.max(Math.floor(top / ROW) - 4, 0), last = Math.min(first + Math.ceil(height / ROW) + 8, list.length);
  useEffect(() => setCursor(0), [q, sort, down]);
  const hours = list.reduce((sum, j) => sum + system.outcomes.service[j] / 3600, 0);
  const grid = { gridTemplateColumns: shown.map((c) => c.wide).join(" ") };
  const onKey = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[e.key];
    if (e.key === "Enter" && list[cursor] !== undefined) go("job", { id: list[cursor], sys: chosen.value });
    if (by === undefined) return;
    e.preventDefault();
    const next = Math.min(Math.max(cursor + by, 0), list.length - 1);
    setCursor(next);
    const el = box.current!;
    if (next * ROW < el.scrollTop) el.scrollTop = next * ROW;
    if ((next + 1) * ROW > el.scrollTop + el.clientHeight) el.scrollTop = (next + 1) * ROW - el.clientHeight;
  };
  return (
    <>
      <h1>Jobs</h1>
      <SystemChoice report={report} />
      <div class="bar">
        <input id="search" type="search" value={q} placeholder="user:ann state:failed gpus>4 wait>3600 name" aria-label="Filter"
          onInput={(e) => change({ q: e.currentTarget.value })} />
        <span class="quiet" id="shown">{count(list.length)} of {count(report.jobs.n)} jobs, {trim(hours, 5)} {held()}-hours</span>
        <button onClick={() => save(report, system, list)}>save as CSV</button>
      </div>
      <div class="rows" role="table" aria-label="Jobs" aria-rowcount={list.length}>
        <div class="line head" role="row" style={grid}>
          {shown.map((c) => (
            <span key={c.key} role="columnheader" class={typeof c.value(report, system, 0) === "string" ? "" : "num"}
              aria-sort={sort === c ? (down ? "descending" : "ascending") : "none"}>
              <button onClick={() => change({ sort: c.key, down: sort === c && !down ? 1 : undefined })}>
                {c.name.replace("GPU", held())}{sort === c ? (down ? " ↓" : " ↑") : ""}
              </button>
            </span>
          ))}
        </div>
        <div ref={box} class="body" role="rowgroup" tabIndex={0} style={{ height: `${height}px` }} onKeyDown={onKey} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
          <div style={{ height: `${list.length * ROW}px`, position: "relative" }}>
            {list.slice(first, last).map((j, n) => (
              <div key={j} role="row" class={first + n === cursor ? "line cursor" : "line"} style={{ ...grid, top: `${(first + n) * ROW}px` }}
                onClick={() => { setCursor(first + n); }} onDblClick={() => go("job", { id: j, sys: chosen.value })}>
                {shown.map((c) => (
                  <span key={c.key} role="cell" class={typeof c.value(report, system, j) === "number" ? "num" : ""}>
                    {c.key === "name"
                      ? <a href={link("job", { id: j, sys: chosen.value })}><bdi>{c.text(report, system, j).slice(0, 200) || "(no name)"}</bdi></a>
                      : <bdi>{c.text(report, system, j).slice(0, 200)}</bdi>}
                  </span>
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
      {list.length === 0 && <p class="note">No job is like that.</p>}
    </>
  );
}

/** field quotes a value for CSV. What a spreadsheet would take for a formula starts with a quote. */
function field(text: string): string {
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r']/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function save(r: Report, s: System, list: number[]): void {
  const lines = ["job,user,model,class,gpus,submit_s,wait_s,run_s,jct_s,preemptions,lost_gpu_s,state"];
  const number = (x: number) => (Number.isFinite(x) ? String(Number(x.toFixed(3))) : "");
  for (const j of list) {
    lines.push([
      field(r.jobs.name[j]), field(r.jobs.user[j]), field(r.jobs.model[j]), field(r.jobs.class[j]), r.jobs.gpus[j],
      ...["submit", "wait", "run", "jct", "preempted", "lost"].map((k) => number(numberOf(r, s, j, k))), stateOf(r, s, j),
    ].join(","));
  }
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  a.download = "jobs.csv";
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
