// What a budget buys: the time of jobs against GPUs or money, the chosen point, and the widths that belong to it.

import { useMemo } from "preact/hooks";
import { Figure, Grid, Plot } from "./charts";
import { many, percent, span, trim } from "./format";
import type { Report } from "./model";

/** PlanDoc is the document of plan --json, with the unit of budgets. */
export interface PlanDoc {
  workload: string;
  method: string;
  continuous: boolean;
  budget: number;
  unit: string;
  avg_jct_h: number;
  avg_weighted_jct_h?: number;
  usage_gpus: number;
  price: number | null;
  saves_s_per_job_per_gpu: number | null;
  min_budget: number;
  widths: { class: string; epoch: number; gpu_type?: string; gpus: number; share: number }[];
  frontier: { budget: number; avg_jct_h: number; avg_weighted_jct_h?: number }[];
  reserve?: { gpus: number; avg_rented: number; avg_idle: number; p_above: number; cost_per_h: number; cost_all_rented_per_h: number };
  verified?: { seeds: number; jobs: number; hours: number; avg_jct_h: Interval; gpus: Interval };
}

interface Interval { mean: number; low: number; high: number }

const hours = (x: number) => span(x * 3600);

/** slope says what more of the budget buys, and less would cost. */
function slope(p: PlanDoc): string {
  const words: string[] = [];
  const unit = p.unit === "GPUs" ? "GPU" : "unit of money an hour";
  if (p.saves_s_per_job_per_gpu !== null) words.push(`At this point one more ${unit} saves ${span(p.saves_s_per_job_per_gpu)} a job.`);
  else words.push("This method knows no price of a GPU: the slope is that between the budgets that were tried.");
  const more = p.frontier.find((f) => f.budget > p.budget), less = [...p.frontier].reverse().find((f) => f.budget < p.budget);
  if (more) words.push(`${trim(more.budget, 4)} would make it ${hours(more.avg_jct_h)}, ${percent(1 - more.avg_jct_h / p.avg_jct_h)} less time.`);
  if (less) words.push(`${trim(less.budget, 4)} would make it ${hours(less.avg_jct_h)}, ${percent(less.avg_jct_h / p.avg_jct_h - 1)} more.`);
  return words.join(" ");
}

export function Frontier({ report }: { report: Report }) {
  const p = report.head.plan as PlanDoc;
  const line = useMemo(() => {
    const all = [...p.frontier.map((f) => ({ b: f.budget, jct: f.avg_jct_h as number | null, at: null as number | null }))];
    const same = all.find((f) => f.b === p.budget);
    if (same) same.at = p.avg_jct_h;
    else all.push({ b: p.budget, jct: p.avg_jct_h, at: p.avg_jct_h });
    all.sort((x, y) => x.b - y.b);
    return {
      x: all.map((f) => f.b),
      lines: [{ name: "mean JCT", hue: 0, values: all.map((f) => f.jct) }, { name: "chosen", hue: 1, values: all.map((f) => f.at), points: true }],
    };
  }, [p]);
  const weighted = p.avg_weighted_jct_h !== undefined;
  return (
    <>
      <h1>Frontier</h1>
      <dl class="facts">
        {p.workload && <><dt>workload</dt><dd><bdi>{p.workload}</bdi></dd></>}
        <dt>method</dt><dd>{p.method}{p.continuous && ", fractions of GPUs"}</dd>
        <dt>budget</dt><dd><span data-figure="budget" data-value={p.budget}>{trim(p.budget, 6)}</span> {p.unit === "GPUs" ? "GPUs on average" : "of money per hour"}; at least {trim(p.min_budget, 6)} are needed</dd>
        <dt>used of it</dt><dd data-figure="usage" data-value={p.usage_gpus}>{trim(p.usage_gpus, 6)}</dd>
        <dt>mean JCT</dt><dd data-figure="jct" data-value={p.avg_jct_h}>{hours(p.avg_jct_h)}</dd>
        {weighted && <><dt>weighted mean</dt><dd data-figure="weighted" data-value={p.avg_weighted_jct_h}>{hours(p.avg_weighted_jct_h!)}</dd></>}
      </dl>
      <Figure
        title="Time of jobs against the budget" says={slope(p)} head={[p.unit === "GPUs" ? "GPUs" : "money per hour", "mean JCT, h", ...(weighted ? ["weighted, h"] : [])]}
        rows={p.frontier.map((f) => [trim(f.budget, 6), trim(f.avg_jct_h, 6), ...(weighted ? [trim(f.avg_weighted_jct_h ?? NaN, 6)] : [])])}
      >
        <Plot x={line.x} lines={line.lines} height={300} xText={(v) => trim(v, 4)} yText={(v) => hours(v)} />
      </Figure>
      <Widths plan={p} />
      {p.reserve && <Reserve r={p.reserve} />}
      {p.verified && (
        <Figure title="Simulated" says={`The plan on jobs that arrive at random: ${many(p.verified.seeds, "seed")} of ${many(p.verified.jobs, "job")} each; 95 % intervals over seeds.`}>
          <Grid id="verified" head={["figure", "planned", "simulated", "from", "to"]} rows={[
            ["mean JCT", hours(p.avg_jct_h), hours(p.verified.avg_jct_h.mean), hours(p.verified.avg_jct_h.low), hours(p.verified.avg_jct_h.high)],
            ["GPUs", trim(p.usage_gpus, 5), trim(p.verified.gpus.mean, 5), trim(p.verified.gpus.low, 5), trim(p.verified.gpus.high, 5)],
          ]} />
        </Figure>
      )}
    </>
  );
}

/** Widths shows a bar for each class and epoch. */
function Widths({ plan }: { plan: PlanDoc }) {
  const most = Math.max(1, ...plan.widths.map((w) => w.gpus));
  const classes = new Set(plan.widths.map((w) => w.class)).size, kinds = plan.widths.some((w) => w.gpu_type);
  const shown = plan.widths.slice(0, 500);
  return (
    <Figure title="Widths" says={`${many(classes, "class").replace("classs", "classes")}; the widest part has ${trim(most, 4)} GPUs. A share below 100 % is that of the jobs of a class which have this width.`}>
      <Grid
        id="widths" head={["class", "size", "epoch", ...(kinds ? ["GPU"] : []), "GPUs", "share of jobs"]}
        rows={shown.map((w) => [
          w.class || "–", <span class="meter"><i style={{ width: `${(100 * w.gpus) / most}%` }} /></span>, String(w.epoch), ...(kinds ? [w.gpu_type ?? ""] : []),
          <span data-value={w.gpus}>{trim(w.gpus, 4)}</span>, percent(w.share),
        ])}
      />
      {plan.widths.length > shown.length && <p class="note">{many(plan.widths.length - shown.length, "more row")} are left out.</p>}
    </Figure>
  );
}

function Reserve({ r }: { r: NonNullable<PlanDoc["reserve"]> }) {
  return (
    <Figure title="Reserve or rent" says={`${many(r.gpus, "GPU")} reserved and ${trim(r.avg_rented, 4)} rented on average cost ${trim(r.cost_per_h, 5)} an hour; all rented ${trim(r.cost_all_rented_per_h, 5)}.`}>
      <Grid id="reserve" head={["figure", "value"]} rows={[
        ["reserved GPUs", String(r.gpus)], ["rented on average", trim(r.avg_rented, 5)], ["reserved and idle on average", trim(r.avg_idle, 5)],
        ["share of time with rented ones", percent(r.p_above)],
      ]} />
    </Figure>
  );
}
