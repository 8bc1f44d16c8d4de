// The page: its navigation, its keys, and what is wrong where a file is damaged.

import { render, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { About, AboutHost } from "./about";
import { Compare } from "./compare";
import { Calibration } from "./calibration";
import { Energy } from "./energy";
import { Figures } from "./figures";
import { Frontier } from "./frontier";
import { Job, JobNow } from "./job";
import { Jobs } from "./jobs";
import { Losses } from "./losses";
import { DoorScreen } from "./door";
import { Decision } from "./decision";
import { board, can, contact, enter, info, keepPast, past, wrong } from "./live";
import type { Report } from "./model";
import { read } from "./model";
import { People } from "./people";
import { chosen, dark, go, link, live, offer, place, said, screens } from "./state";
import { Time } from "./time";
import { WhatIf } from "./whatif";
import { Yard } from "./yard";

const titles: Record<string, string> = {
  yard: "Yard", compare: "Compare", time: "Time", jobs: "Jobs", losses: "Losses", people: "People", decision: "Decision",
  whatif: "What if", energy: "Energy", calibration: "Calibration", figures: "Figures", frontier: "Frontier", about: "About",
};

const keys: [string, string][] = [
  ["/", "filter jobs"], ["1 to 9", "open a screen"], ["arrows", "move the chart"], ["+ and −", "zoom"], ["0", "all of it"],
  ["[ and ]", "attempt before, after"], ["Enter", "open the job"], ["Esc", "leave"], ["?", "this help"],
  ["Shift and ↑ ↓", "taller, thinner rows"], ["wheel, drag", "zoom, move; with Shift: rows"],
];

function Screen({ report }: { report: Report }) {
  switch (place.value.screen) {
    case "time":
      return <Time report={report} />;
    case "jobs":
      return <Jobs report={report} />;
    case "job":
      return <Job report={report} />;
    case "losses":
      return <Losses report={report} />;
    case "people":
      return <People report={report} />;
    case "energy":
      return <Energy report={report} />;
    case "figures":
      return <Figures report={report} />;
    case "frontier":
      return <Frontier report={report} />;
    case "decision":
      return <Decision report={report} />;
    case "whatif":
      return <WhatIf report={report} />;
    case "about":
      return <About report={report} />;
  }
  return <Compare report={report} />;
}

/** Past shows a screen about what happened, once that was read. */
function Past() {
  useEffect(keepPast, []);
  const r = past.value;
  if (!r) return wrong.value ? <p class="warn">{wrong.value}</p> : <p class="note">Reading what happened…</p>;
  if (r.jobs.n === 0) return <p class="note">No job was submitted yet.</p>;
  return <Screen report={r} />;
}

/** serves reports whether the host can show a screen: one that keeps no history shows how things stand alone. */
function serves(screen: string): boolean {
  if (!info.value || screen === "yard" || screen === "about") return true;
  if (screen === "calibration" || screen === "whatif") return can(screen);
  return can("history");
}

function Live() {
  if (contact.value === "unknown") return <DoorScreen />;
  if (!serves(place.value.screen)) return place.value.screen === "job" ? <JobNow /> : <p class="note">This host does not serve that: it shows how things stand now.</p>;
  if (place.value.screen === "about" && info.value && !can("history")) return <AboutHost info={info.value} />;
  if (place.value.screen === "calibration") return <Calibration />;
  if (place.value.screen === "whatif") return <WhatIf />;
  return place.value.screen === "yard" ? <Yard /> : <Past />;
}

/** Contact says who is asked, as whom, and whether that goes on. */
function Contact() {
  const i = info.value, words = { live: "● live", away: "○ away", hidden: "○ paused", unknown: "○ not known" };
  return (
    <span class="contact" id="contact" data-contact={contact.value} data-seq={board.value?.seq ?? ""} title={contact.value === "away" ? wrong.value : ""}>
      {i && <><bdi>{i.you ?? ""}</bdi> ({i.role ?? ""}) <bdi>{i.system}</bdi> </>}
      <b>{words[contact.value]}</b>
    </span>
  );
}

function App({ title, children }: { title: (screen: string) => string | null; children: ComponentChildren }) {
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLElement && ["INPUT", "SELECT", "TEXTAREA"].includes(e.target.tagName);
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Escape") {
        if (document.querySelector("dialog[open]")) return; // which it closes
        setHelp(false);
        if (typing) (e.target as HTMLElement).blur();
        else if (place.value.screen === "job") history.back();
        return;
      }
      if (typing) return;
      if (e.key === "?") setHelp((h) => !h);
      else if (e.key === "/") {
        e.preventDefault();
        if (place.value.screen !== "jobs" && screens.includes("jobs") && title("jobs") !== null) go("jobs", { sys: chosen.value });
        setTimeout(() => document.getElementById("search")?.focus(), 50);
      } else if (/^[1-9]$/.test(e.key)) {
        const wanted = screens.filter((s) => title(s) !== null)[Number(e.key) - 1];
        if (wanted) go(wanted, { sys: chosen.value || undefined });
      }
    };
    addEventListener("keydown", onKey);
    document.getElementById("page")!.dataset.ready = "1"; // keys are heard from here on
    return () => removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = dark.value ? "dark" : "light";
  }, [dark.value]);
  const screen = place.value.screen === "job" ? "jobs" : place.value.screen, shown = screens.filter((s) => title(s) !== null);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>to the content</a>
      <header>
        <b>Trainyard</b>
        <nav aria-label="Screens">
          {shown.map((s) => (
            <a key={s} href={link(s, { sys: chosen.value || undefined })} aria-current={s === screen ? "page" : undefined}>
              {title(s)}
            </a>
          ))}
        </nav>
        {live && <Contact />}
        <button onClick={() => (dark.value = !dark.value)} aria-label={dark.value ? "light colours" : "dark colours"}>{dark.value ? "☀" : "☾"}</button>
        <button onClick={() => setHelp(!help)} aria-expanded={help}>?</button>
      </header>
      {help && (
        <dl class="help">
          {keys.map(([k, v]) => [<dt key={k}><kbd>{k}</kbd></dt>, <dd key={v}>{v}</dd>])}
        </dl>
      )}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <p class="said" role="status" aria-live="polite">{said.value}</p>
    </>
  );
}

async function start(): Promise<void> {
  const root = document.getElementById("page")!;
  if (typeof DecompressionStream === "undefined") return; // the plain table says what is needed
  try {
    if (live) {
      await enter(live);
      root.replaceChildren();
      render(<App title={(s) => (serves(s) ? titles[s] : null)}><Live /></App>, root);
      return;
    }
    const report = await read(), alone = report.systems.length === 1, h = report.head;
    if (report.systems.length === 0) offer([...(h.plan ? ["frontier"] : []), ...(h.tables ? ["figures"] : []), "about"]);
    root.replaceChildren();
    render(
      <App title={(s) => (s === "compare" && alone ? "Summary" : s === "whatif" && !h.whatif ? null : titles[s])}>
        {h.kept && <p class="note" id="kept">{h.kept.says}</p>}
        {report.jobs.n === 0 && report.systems.length > 0 ? <p class="note">There are no jobs in this report.</p> : <Screen report={report} />}
      </App>, root);
  } catch (e) {
    const note = document.createElement("p");
    note.className = "warn";
    note.textContent = live ? `This page cannot be shown: ${e instanceof Error ? e.message : String(e)}.` : `This report cannot be shown: ${e instanceof Error ? e.message : String(e)}.`;
    root.prepend(note);
    root.dataset.ready = "failed";
  }
}

void start();
