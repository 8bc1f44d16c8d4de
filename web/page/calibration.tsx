// How often forecasts came true: the share of starts and ends inside the interval that was said, by lead time and system.

import { useEffect, useState } from "preact/hooks";
import { Figure, Grid } from "./charts";
import { clock, count, many, percent } from "./format";
import { get } from "./live";
import { light, night } from "./palette";
import { dark } from "./state";

interface Row {
  of: "start" | "end"; system: string; lead_s: number; judged: number; early: number; inside: number; late: number;
  pending: number; void: number; pit: number[];
}

interface Doc { kept: number; most: number; since?: string; expected: number; rows: Row[] }

const leads: Record<number, string> = { 0: "any", 60: "up to a minute", 600: "up to 10 minutes", 3600: "up to an hour", 21600: "up to 6 hours", 86400: "up to a day" };
const bins = [{ share: 0.1, text: "earliest tenth" }, { share: 0.4, text: "before the middle" }, { share: 0.4, text: "after the middle" }, { share: 0.1, text: "latest tenth" }];

export function Calibration() {
  const [doc, setDoc] = useState<Doc | null>(null), [wrong, setWrong] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const read = () => get<Doc>("/v1/calibration", stop.signal).then((d) => { setDoc(d); setWrong(""); })
      .catch((e) => { if (!stop.signal.aborted) setWrong(e instanceof Error ? e.message : String(e)); });
    void read();
    const timer = setInterval(() => { if (!document.hidden) void read(); }, 5000);
    return () => { stop.abort(); clearInterval(timer); };
  }, []);
  if (!doc) return <><h1>Calibration</h1>{wrong ? <p class="warn">{wrong}</p> : <p class="note">Reading forecasts…</p>}</>;
  const none = doc.rows.every((r) => r.judged === 0);
  return (
    <>
      <h1>Calibration</h1>
      <p>
        {doc.kept === 0
          ? "No forecast was given yet. One is kept of each job that is submitted, and one a job and minute where its page or trainyard why is asked."
          : `${many(doc.kept, "forecast")} that ${doc.kept === 1 ? "was" : "were"} given${doc.since ? ` since ${clock(doc.since)}` : ""} and kept; the newest ${count(doc.most)} are.`}
        {" "}Where forecasts are right, {percent(doc.expected)} of times lie inside the interval that was said.
      </p>
      {wrong && <p class="warn">{wrong}</p>}
      {doc.kept > 0 && none && <p class="note">None of them can be judged yet: what they are about has not come.</p>}
      {(["start", "end"] as const).map((of) => <Of key={of} of={of} doc={doc} />)}
    </>
  );
}

function Of({ of, doc }: { of: "start" | "end"; doc: Doc }) {
  const rows = doc.rows.filter((r) => r.of === of), all = rows.find((r) => r.system === "" && r.lead_s === 0);
  if (!all || all.judged + all.pending + all.void === 0) return null;
  const word = of === "start" ? "starts" : "ends", systems = new Set(rows.map((r) => r.system).filter(Boolean)).size;
  const shown = systems > 1 ? rows : rows.filter((r) => r.system === "");
  return (
    <Figure
      title={of === "start" ? "Starts" : "Ends"}
      says={all.judged > 0
        ? `${percent(all.inside / all.judged)} of ${count(all.judged)} ${word} came inside their interval; ${count(all.early)} earlier, ${count(all.late)} later.${all.judged < 30 ? " That is too few to say much." : ""}`
        : `No forecast of ${word} can be judged yet.`}
    >
      {all.judged > 0 && <Histogram row={all} word={word} />}
      <Grid label={`Lead times of ${word}`}
        id={`calibration-${of}`} head={["system", "said ahead", "judged", "inside", "earlier", "later", "to come", "void"]}
        rows={shown.map((r) => [
          r.system || "all", leads[r.lead_s] ?? "longer", <span data-judged={r.judged} data-system={r.system} data-lead={r.lead_s}>{count(r.judged)}</span>,
          <span data-inside={r.inside}>{r.judged > 0 ? percent(r.inside / r.judged) : "–"}</span>, count(r.early), count(r.late), count(r.pending), count(r.void),
        ])}
      />
    </Figure>
  );
}

/** Histogram draws where in what was said the times lay: flat at 1 where forecasts are right. */
function Histogram({ row, word }: { row: Row; word: string }) {
  const pal = dark.value ? night : light, W = 600, H = 140;
  const heights = bins.map((b, i) => row.pit[i] / row.judged / b.share), most = Math.max(2, ...heights);
  let x = 0;
  return (
    <>
      <svg class="pit" viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`Where ${word} lay in what was said: ` + bins.map((b, i) => `${b.text} ${percent(row.pit[i] / row.judged)}, right would be ${percent(b.share)}`).join("; ")}>
        {bins.map((b, i) => {
          const at = x;
          x += b.share * W;
          return <rect key={i} x={at + 1} width={b.share * W - 2} y={H - (heights[i] / most) * H} height={(heights[i] / most) * H} fill={pal.hues[i === 0 || i === 3 ? 2 : 0]}><title>{`${b.text}: ${percent(row.pit[i] / row.judged)}`}</title></rect>;
        })}
        <line x1="0" x2={W} y1={H - H / most} y2={H - H / most} stroke={pal.ink} stroke-dasharray="4 4" />
      </svg>
      <p class="note">From left to right: the earliest tenth of what was said, up to its middle, up to its latest tenth, and that. The dashed line is where all bars end if forecasts are right.</p>
    </>
  );
}
