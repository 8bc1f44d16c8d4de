// Figures of many runs, of which nothing else is kept: the tables of an experiment.

import { Grid } from "./charts";
import { count, trim } from "./format";
import type { Cell, Report } from "./model";

function cell(x: Cell, name: string) {
  if (x === null || x === undefined) return "–";
  if (typeof x === "number") return <span data-column={name} data-value={x}>{Number.isInteger(x) && Math.abs(x) < 1e15 ? count(x).replace(/^-/, "−") : trim(x, 5)}</span>;
  return String(x);
}

export function Figures({ report }: { report: Report }) {
  const h = report.head;
  return (
    <>
      <h1>Figures</h1>
      <dl class="facts">
        {(h.facts ?? []).map((f) => [<dt key={f.name}>{f.name}</dt>, <dd key={f.name + "."}><bdi>{f.text}</bdi></dd>])}
      </dl>
      {h.notes.map((n) => <p class="note" key={n}>{n}</p>)}
      {h.printed && <pre class="printed" tabIndex={0} aria-label="What the command printed">{h.printed}</pre>}
      <p class="note">Columns below are named as in <code>--json</code>. They sum up runs whose attempts are not kept: there is no chart of GPUs.</p>
      {(h.tables ?? []).map((t, n) => (
        <section key={n}>
          <h2>{t.title}</h2>
          <Grid id={`figures-${n}`} label={t.title} head={t.head} rows={t.rows.slice(0, 2000).map((r) => r.map((x, i) => cell(x, t.head[i])))} />
          {t.rows.length > 2000 && <p class="note">{count(t.rows.length - 2000)} more rows are left out here.</p>}
        </section>
      ))}
    </>
  );
}
