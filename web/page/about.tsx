// What was run, and what the page is made of.

import { Grid } from "./charts";
import type { Info } from "./live";
import type { Report } from "./model";
import { live } from "./state";

export function About({ report }: { report: Report }) {
  const h = report.head;
  return (
    <>
      <h1>About</h1>
      <dl class="facts">
        <dt>version</dt><dd>{h.version}</dd>
        {(h.facts ?? []).map((f) => [<dt key={f.name}>{f.name}</dt>, <dd key={f.name + "."}><bdi>{f.text}</bdi></dd>])}
      </dl>
      {h.command && <p>Written by <code>{h.command.map((w) => (/^[\w./:,=@%+-]+$/.test(w) ? w : `'${w.replace(/'/g, "'\\''")}'`)).join(" ")}</code></p>}
      <p>
        {h.anonymous ? "Jobs, users, models and nodes are numbered. " : ""}
        Times in tables of jobs and attempts are whole multiples of {h.unit_s} s{h.rounded ? ", rounded" : ", exactly"}. Headline figures are those of <code>--json</code>.
        {live
          ? "This page asks its own host alone, and sends the key that identifies it with each request."
          : "This file holds no commands, variables, output or paths of jobs, and asks no one for anything."}
      </p>
      <Grid
        head={["system", "computed by", "log hash", "settings"]}
        rows={h.systems.map((s) => [s.name, s.engine, <code>{s.log_hash ?? "–"}</code>,
          Object.entries(s.settings ?? {}).map(([k, v]) => `${k}=${v}`).join(" ") || "–"])}
      />
      <Licences />
    </>
  );
}

/** AboutHost is for a host that keeps no history. */
export function AboutHost({ info }: { info: Info }) {
  return (
    <>
      <h1>About</h1>
      <dl class="facts">
        <dt>version</dt><dd>{info.version}</dd><dt>host</dt><dd>{info.host}</dd><dt>system</dt><dd>{info.system}</dd>
        {info.leader && <><dt>decides</dt><dd>{info.leader}</dd></>}
        <dt>settings</dt><dd>{Object.entries(info.settings).map(([k, v]) => `${k}=${v}`).join(" ") || "–"}</dd>
        <dt>serves</dt><dd>{info.capabilities.join(", ")}</dd>
      </dl>
      <p>This page asks its own host alone, and sends the key that identifies it with each request.</p>
      <Licences />
    </>
  );
}

function Licences() {
  return (
    <>
      <h2>Licences</h2>
      <p>Trainyard: Apache-2.0. The page contains Preact and its signals (MIT, Jason Miller and others) and uPlot (MIT, Leon Sorokin).</p>
    </>
  );
}
