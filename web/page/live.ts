// The host that a live page shows: who asks, how things stand, and what happened so far. The key that identifies the
// page is sent with every request as a bearer, never as a cookie: all ports of a machine share cookies.

import { signal } from "@preact/signals";
import { setUnit } from "./format";
import { parseHistory, type History, type Report } from "./model";

export interface Row {
  id: number;
  ref: string;
  name: string;
  user?: string;
  state: string;
  outcome?: string;
  priority?: number;
  gpus_min: number;
  gpus_want: number;
  gpus_max: number;
  gpus: string[];
  attempt: number;
  preemptions: number;
  submitted: string;
  started?: string;
  ended?: string;
}

export interface Device {
  name: string;
  type?: string;
  state: string;
  why?: string;
  jobs: number[];
  memory_mb?: number;
  of_mb?: number;
  use?: number;
  watts?: number;
  held_idle?: boolean;
  by?: string;
}

export interface Node {
  name: string;
  rack?: number;
  state: string;
  gpus: string[];
}

export interface Tiles {
  gpus: number;
  busy: number;
  running: number;
  waiting: number;
  waiting_gpus: number;
  watts?: number;
}

export interface Board {
  seq: number;
  now: string;
  unit: string;
  system: string;
  jobs: Map<number, Row>;
  gpus: Device[];
  nodes: Node[];
  tiles: Tiles;
}

export interface Within {
  known: boolean;
  low: string;
  median: string;
  high: string;
}

export interface Info {
  version: string;
  host: string;
  capabilities: string[];
  system: string;
  settings: Record<string, string>;
  since: string;
  problems: string[];
  leader?: string;
  you?: string;
  role?: string;
}

/** JobDoc is a job as lists have it, as far as the page uses it. */
export interface JobDoc extends Row {
  why?: string;
  step?: number;
  total?: number;
  speed?: number;
  start?: Within;
  end?: Within;
}

export class Problem extends Error {
  constructor(readonly status: number, readonly code: string, text: string) {
    super(text);
  }
}

export const board = signal<Board | null>(null);
export const info = signal<Info | null>(null);
export const past = signal<Report | null>(null);
/** contact is how the stream stands: it goes on, the host is away, this tab is hidden, or no one knows who asks. */
export const contact = signal<"live" | "away" | "hidden" | "unknown">("away");
export const wrong = signal("");
/** news are the latest changes in words, the latest first. */
export const news = signal<{ at: string; id: number; text: string }[]>([]);

let by = "link";
let key = "";

function shelf(): Storage {
  return by === "token" ? sessionStorage : localStorage;
}

/** remember keeps the key: that of a link by origin, which has the port; a token for this tab alone. */
function remember(k: string): void {
  key = k;
  try {
    if (k) shelf().setItem("trainyard.key", k);
    else shelf().removeItem("trainyard.key");
  } catch { /* it holds for this page alone then */ }
}

export async function ask(path: string, options: { body?: unknown; post?: boolean; tag?: string; signal?: AbortSignal; stream?: boolean } = {}): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${key}` };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.tag) headers["If-Match"] = options.tag;
  if (options.stream) headers.Accept = "text/event-stream";
  const answer = await fetch(path, {
    method: options.post ? "POST" : "GET", headers, body: options.body === undefined ? undefined : JSON.stringify(options.body),
    credentials: "omit", cache: "no-store", signal: options.signal, redirect: "error",
  });
  if (answer.ok) return answer;
  let text = `${answer.status} ${answer.statusText}`, code = "";
  try {
    const doc = await answer.json();
    text = doc.detail || text;
    code = doc.code ?? "";
  } catch { /* it is no problem document */ }
  if (answer.status === 401) leave(text);
  throw new Problem(answer.status, code, text);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(path, { signal })).json()) as T;
}

/** leave forgets the key: it is none any more. */
function leave(text: string): void {
  remember("");
  contact.value = "unknown";
  wrong.value = text;
}

export const can = (operation: string) => info.value?.capabilities.includes(operation) ?? false;

/** may reports whether the one who asks may change a job. */
export function may(user: string | undefined): boolean {
  const me = info.value;
  return mayAll() || (by !== "look" && me?.role === "user" && !!user && user === me.you);
}

/** looking reports whether this page only looks, whoever asks. */
export const looking = () => by === "look";

/** mayAll reports whether the one who asks may change what is no one's. */
export const mayAll = () => by !== "look" && info.value?.role === "admin";

interface Change {
  seq: number;
  now: string;
  unit: string;
  system: string;
  jobs?: Row[];
  gone?: number[];
  gpus?: Device[];
  nodes?: Node[];
  tiles: Tiles;
}

function words(r: Row, unit: string): string {
  if (r.state === "done") return r.outcome || "done";
  return r.gpus.length > 0 ? `${r.state} on ${r.gpus.length} ${unit}${r.gpus.length === 1 ? "" : "s"}` : r.state;
}

function take(kind: string, c: Change): void {
  setUnit(c.unit);
  const old = kind === "delta" ? board.value : null, jobs = new Map(old?.jobs ?? []);
  if (old) {
    const fresh = (c.jobs ?? []).map((r) => ({ at: c.now, id: r.id, text: `${r.name || "job"} #${r.id}: ${words(r, c.unit)}` }));
    if (fresh.length > 0) news.value = [...fresh.reverse(), ...news.value].slice(0, 12);
  }
  for (const r of c.jobs ?? []) jobs.set(r.id, r);
  for (const id of c.gone ?? []) jobs.delete(id);
  board.value = {
    seq: c.seq, now: c.now, unit: c.unit, system: c.system, jobs, gpus: c.gpus ?? old?.gpus ?? [], nodes: c.nodes ?? old?.nodes ?? [], tiles: c.tiles,
  };
}

/** events reads a stream of server-sent events until it ends. */
export async function events(answer: Response, show: (kind: string, data: string) => void): Promise<void> {
  const reader = answer.body!.getReader(), decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      let kind = "", data: string | null = null;
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) kind = line.slice(7);
        else if (line.startsWith("data: ")) data = line.slice(6);
      }
      rest = rest.slice(end + 2);
      if (data !== null) show(kind, data);
    }
  }
}

let stop: AbortController | null = null;

const rest = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** follow keeps the board up to date. While this tab is hidden it holds no stream: a browser has six for each host. */
async function follow(): Promise<void> {
  for (let tries = 0; ; ) {
    if (contact.value === "unknown") return;
    if (document.hidden) {
      contact.value = "hidden";
      await new Promise<void>((seen) => document.addEventListener("visibilitychange", () => seen(), { once: true }));
      continue;
    }
    stop = new AbortController();
    try {
      if (!info.value || tries > 0) info.value = await get<Info>("/v1/info", stop.signal);
      const from = board.value && contact.value === "hidden" ? `?from=${board.value.seq}` : "";
      const answer = await ask(`/v1/board${from}`, { signal: stop.signal, stream: true });
      contact.value = "live";
      wrong.value = "";
      tries = 0;
      await events(answer, (kind, data) => {
        if (kind === "problem") throw new Error((JSON.parse(data) as { detail?: string }).detail ?? data);
        take(kind, JSON.parse(data) as Change);
      });
    } catch (e) {
      if (!document.hidden && (contact.value as string) !== "unknown") wrong.value = e instanceof Error ? e.message : String(e);
    }
    stop.abort();
    if (document.hidden || (contact.value as string) === "unknown") continue;
    contact.value = "away";
    tries++;
    await rest(Math.min(250 * 2 ** Math.min(tries, 5), 5000));
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop?.abort();
});

let wanted = false, busy = false, had = -1;

/** keepPast has what happened so far read again as it grows, for as long as a screen needs it. */
export function keepPast(): () => void {
  wanted = true;
  void readPast();
  const timer = setInterval(() => void readPast(), 1000);
  return () => {
    wanted = false;
    clearInterval(timer);
  };
}

let next = 0;

async function readPast(): Promise<void> {
  const seq = board.value?.seq ?? -1;
  if (!wanted || busy || document.hidden || contact.value === "unknown" || Date.now() < next) return;
  if (past.value && seq === had) return;
  busy = true;
  const begun = performance.now();
  try {
    const doc = await get<History>("/v1/history");
    past.value = await parseHistory(doc);
    had = doc.seq >= seq ? seq : doc.seq;
  } catch (e) {
    if (!past.value) wrong.value = e instanceof Error ? e.message : String(e);
  }
  busy = false;
  next = Date.now() + Math.max(1000, 10 * (performance.now() - begun)); // a tenth of the time at most
}

/** enter takes the key: of a link in the address, which is cleared, else the one that was kept. */
export async function enter(how: string): Promise<void> {
  by = how;
  try {
    key = shelf().getItem("trainyard.key") ?? "";
  } catch { /* none was kept */ }
  const link = /^#k=([0-9a-f]+)$/.exec(location.hash);
  if (link) {
    history.replaceState(null, "", location.pathname + "#/yard");
    try {
      const answer = await fetch("/ui/key", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ link: link[1] }), credentials: "omit", redirect: "error",
      });
      const doc = (await answer.json()) as { key?: string; detail?: string };
      if (doc.key) remember(doc.key);
      else if (!key) return leave(doc.detail ?? answer.statusText);
    } catch (e) {
      return leave(e instanceof Error ? e.message : String(e));
    }
  }
  if (!key) return leave("");
  void follow();
}

/** signIn takes a token that was typed in. */
export function signIn(token: string): void {
  remember(token.trim());
  contact.value = "away";
  wrong.value = "";
  void follow();
}

export const tokens = () => by === "token";
