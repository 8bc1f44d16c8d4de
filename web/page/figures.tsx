// Figures of many runs, of which nothing else is kept: the tables of an experiment.

import { Grid } from "./charts";
import { count, trim } from "./format";
import type { Cell, Report } from "./model";

function cell(x: Cell, name: string) {
  if (x === null || x === undefined) return "–";
  if (typeof x === "number") return <span data-column={name} data-value={x}>{Number.isInteger(x) && Math.abs(x) < 1e15 ? count(x).replace(/^-/, "−") : trim(x, 5)}</span>;
  return String(x);
}

/** Published are figures that a paper has, and those of the same name that came out here, where there are any. */
function Published({ report }: { report: Report }) {
  const all = report.head.tables?.find((t) => t.title === "all"), row = all?.rows[0];
  if (!all || !row) return null;
  const names = all.head.filter((n) => n.startsWith("published.")).map((n) => n.slice("published.".length));
  if (names.length === 0) return null;
  const ours = (n: string) => row[all.head.indexOf(`ours.${n}`)];
  return (
    <section>
      <h2>Published, and here</h2>
      <Grid
        id="published" label="Published, and here" head={["figure", "published", "here"]}
        rows={names.map((n) => [n, cell(row[all.head.indexOf(`published.${n}`)], `published.${n}`), ours(n) === undefined ? "see below" : cell(ours(n), `ours.${n}`)])}
      />
      <p class="note">No tolerance is stated with them. What came out here has intervals over seeds, where there are several: see what was printed, and the tables.</p>
    </section>
  );
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
      <Published report={report} />
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
