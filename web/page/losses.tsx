// Where every GPU-hour went.

import { useMemo } from "preact/hooks";
import { Figure, Grid } from "./charts";
import { at, percent, span, ticks, tickAt, trim, u } from "./format";
import type { Losses as Doc, Report } from "./model";
import { blend, light, lossColours, night, type Palette } from "./palette";
import { chosen, dark } from "./state";
import { NoGPUs, SystemChoice } from "./time";

export function colourOf(pal: Palette, word: string): string {
  const c = lossColours[word];
  if (c?.hue === undefined) return word === "unwanted" ? blend(pal.neutral, pal.ground, 0.35) : word === "apart" ? pal.neutral : blend(pal.neutral, pal.ground, 0.65);
  return pal.hues[c.hue];
}

export function Losses({ report }: { report: Report }) {
  const system = report.systems[chosen.value] ?? report.systems[0], pal = dark.value ? night : light;
  const doc = system.head.losses, words = report.head.classes;
  return (
    <>
      <h1>Losses</h1>
      {report.systems.some((s) => s.head.losses) && <Bars report={report} pal={pal} />}
      <SystemChoice report={report} />
      {doc ? <One doc={doc} words={words} pal={pal} name={system.head.name} /> : <NoGPUs system={system} />}
    </>
  );
}

/** Bars is a bar of 100 % for each system. */
function Bars({ report, pal }: { report: Report; pal: Palette }) {
  const words = report.head.classes;
  const used = words.filter((_, c) => report.systems.some((s) => (s.head.losses?.classes[c] ?? 0) > 0));
  const best = report.systems.filter((s) => s.head.losses && s.head.losses.gpu_hours > 0)
    .map((s) => ({ name: s.head.name, part: s.head.losses!.classes[words.indexOf("useful")] / s.head.losses!.gpu_hours }))
    .sort((a, b) => b.part - a.part)[0];
  return (
    <Figure
      title={u`Every GPU-hour`} says={best ? u`The largest useful share is that of ${best.name}: ${percent(best.part)}. Each bar is all GPU-hours of a run.` : "No time passed."}
      head={["class", ...report.systems.filter((s) => s.head.losses).map((s) => s.head.name + u`, GPU-h`)]}
      rows={[...words.map((w, c) => [lossColours[w]?.title ?? w, ...report.systems.filter((s) => s.head.losses).map((s) => trim(s.head.losses!.classes[c], 7))]),
        ["all", ...report.systems.filter((s) => s.head.losses).map((s) => trim(s.head.losses!.gpu_hours, 7))]]}
    >
      <div class="parts">
        {report.systems.map((s, i) => s.head.losses && s.head.losses.gpu_hours > 0 && (
          <div class="part" key={i}>
            <bdi>{s.head.name}</bdi>
            <div class="whole" role="img" aria-label={`${s.head.name}: ` + used.map((w) => `${lossColours[w].title} ${percent(s.head.losses!.classes[words.indexOf(w)] / s.head.losses!.gpu_hours)}`).join(", ")}>
              {used.map((w) => {
                const part = s.head.losses!.classes[words.indexOf(w)] / s.head.losses!.gpu_hours;
                return part > 0 && (
                  <span key={w} style={{ width: `${part * 100}%`, background: colourOf(pal, w) }} title={`${lossColours[w].title}: ${percent(part)}`}>
                    {part > 0.03 && <b>{lossColours[w].letter}</b>}
                  </span>
                );
              })}
            </div>
          </div>
        ))}
      </div>
      <ul class="legend">
        {used.map((w) => (
          <li key={w}><i style={{ background: colourOf(pal, w) }} />{lossColours[w].letter} {lossColours[w].title}</li>
        ))}
      </ul>
    </Figure>
  );
}

function One({ doc, words, pal, name }: { doc: Doc; words: string[]; pal: Palette; name: string }) {
  const rows = words.map((w, c) => ({ w, hours: doc.classes[c] })).filter((r) => r.hours > 0);
  return (
    <>
      <Grid
        id="losses" head={["class", u`GPU-hours`, "share", "what it is"]}
        rows={[...rows.map((r) => [
          lossColours[r.w].title, <span data-class={r.w} data-value={r.hours}>{trim(r.hours, 6)}</span>,
          percent(r.hours / doc.gpu_hours), lossColours[r.w].explains,
        ]), ["all", <span data-class="all" data-value={doc.gpu_hours}>{trim(doc.gpu_hours, 6)}</span>, "100%", u`GPUs × time`]]}
      />
      <Over doc={doc} words={words} pal={pal} name={name} />
    </>
  );
}

/** Over stacks the classes over time. */
function Over({ doc, words, pal, name }: { doc: Doc; words: string[]; pal: Palette; name: string }) {
  const n = Math.max(0, ...doc.over.map((l) => l.length)), W = 1000, H = 240;
  const shapes = useMemo(() => {
    const total = new Float64Array(n), base = new Float64Array(n);
    for (const list of doc.over) list.forEach((v, i) => (total[i] += v));
    return words.map((w, c) => {
      const list = doc.over[c];
      if (!list.some((v) => v > 0)) return null;
      const up: string[] = [], down: string[] = [];
      for (let i = 0; i < n; i++) {
        const x0 = ((i * W) / n).toFixed(2), x1 = (((i + 1) * W) / n).toFixed(2), sum = total[i] || 1;
        const low = H - (H * base[i]) / sum;
        base[i] += list[i] ?? 0;
        const high = H - (H * base[i]) / sum;
        up.push(`${x0},${high.toFixed(2)} ${x1},${high.toFixed(2)}`);
        down.unshift(`${x1},${low.toFixed(2)} ${x0},${low.toFixed(2)}`);
      }
      return { w, points: [...up, ...down].join(" ") };
    }).filter((s) => s !== null);
  }, [doc]);
  if (n === 0) return null;
  const end = doc.from_s + n * doc.width_s;
  return (
    <Figure title={`Over time, under ${name}`} says={u`From ${at(doc.from_s)} to ${at(doc.to_s)}; each step is ${span(doc.width_s)} of all GPUs.`}>
      <svg class="over" viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label={u`Classes of GPU time over time under ${name}`}>
        {shapes.map((s) => <polygon key={s.w} points={s.points} fill={colourOf(pal, s.w)}><title>{lossColours[s.w].title}</title></polygon>)}
      </svg>
      <div class="axis">
        {ticks(doc.from_s, end, 8).map((t) => <span key={t} style={tickAt((t - doc.from_s) / (end - doc.from_s))}>{at(t)}</span>)}
      </div>
    </Figure>
  );
}
