// Where the page is: all of it stands in the address, so that a link, reload and back restore it.

import { computed, signal } from "@preact/signals";

export interface Place {
  screen: string;
  args: Record<string, string>;
}

/** live is how a live page comes by its key; "" = it is a file. */
export const live = document.getElementById("page")?.dataset.live ?? "";

export const screens: string[] = [live ? "yard" : "compare", "time", "jobs", "losses", "people", "energy", "decision", "whatif", ...(live ? ["calibration"] : []), "about"];

function parse(hash: string): Place {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const args: Record<string, string> = {};
  for (const [k, v] of new URLSearchParams(query ?? "")) args[k] = v;
  const screen = path === "job" || screens.includes(path) ? path : screens[0];
  return { screen, args };
}

export const place = signal<Place>(parse(location.hash));

/** offer has a page show other screens than usual. */
export function offer(list: string[]): void {
  screens.splice(0, screens.length, ...list);
  place.value = parse(location.hash);
}

export function link(screen: string, args: Record<string, string | number | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(args)) if (v !== undefined && v !== "") q.set(k, String(v));
  const text = q.toString();
  return `#/${screen}${text ? "?" + text : ""}`;
}

/** go opens a place; back returns from it. */
export function go(screen: string, args: Record<string, string | number | undefined> = {}): void {
  location.hash = link(screen, args);
}

/** change sets arguments of this place, without a step for back. */
export function change(args: Record<string, string | number | undefined>): void {
  const all: Record<string, string | number | undefined> = { ...place.value.args, ...args };
  history.replaceState(null, "", link(place.value.screen, all));
  place.value = parse(location.hash);
}

addEventListener("hashchange", () => {
  place.value = parse(location.hash);
});

/** chosen is the number of the system that screens about one system show. */
export const chosen = computed(() => Number(place.value.args.sys ?? 0) || 0);

export const dark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => {
  dark.value = e.matches;
});

/** said is what a screen reader is told: the selected bar. */
export const said = signal("");
