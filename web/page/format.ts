// Numbers and times as people read them.

/** span writes seconds in the two largest units that matter: 2d03h, 3h05m, 4m07s, 12.3 s. */
export function span(s: number): string {
  if (!Number.isFinite(s)) return "–";
  const sign = s < 0 ? "−" : "";
  s = Math.abs(s);
  const two = (n: number) => String(n).padStart(2, "0");
  if (s < 60) return sign + (s === 0 ? "0 s" : s < 0.001 ? s.toExponential(1) + " s" : trim(s, 3) + " s");
  const whole = Math.round(s);
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  const minutes = Math.round(s / 60);
  if (minutes < 1440) return `${sign}${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  const hours = Math.round(s / 3600);
  return `${sign}${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** trim writes a number with so many significant digits, without trailing zeros. */
export function trim(x: number, digits: number): string {
  if (!Number.isFinite(x)) return "–";
  if (x !== 0 && (Math.abs(x) >= 1e15 || Math.abs(x) < 1e-6)) return x.toExponential(digits - 1);
  return String(Number(x.toPrecision(digits)));
}

/** count writes a whole number with thin spaces between thousands. */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** many writes a number of things. */
export function many(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

let unit = "GPU"; // what jobs hold

/** setUnit has texts speak of what jobs hold here: GPUs, or slots. */
export function setUnit(word: string | undefined): void {
  unit = word || "GPU";
}

/** held is the word of what jobs hold. */
export const held = () => unit;

/** u is a text that says GPU where what jobs hold is meant. What is put into it stays as it is. */
export function u(text: TemplateStringsArray, ...values: unknown[]): string {
  return text.map((part, i) => part.replaceAll("GPU", unit) + (i < values.length ? String(values[i]) : "")).join("");
}

/** title is a text with a capital at its start. */
export function title(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** whole takes away what sums of seconds leave behind: times are whole multiples of the unit. */
export function whole(s: number, unit: number): number {
  return Math.round(s / unit) * unit;
}

export function percent(x: number): string {
  if (!Number.isFinite(x)) return "–";
  const p = x * 100;
  return (p !== 0 && Math.abs(p) < 9.95 ? p.toFixed(1) : p.toFixed(0)) + "%";
}

export function change(now: number, was: number): string {
  if (!(was > 0) || !Number.isFinite(now)) return "";
  const p = Math.round((now / was - 1) * 100);
  return (p > 0 ? "+" : p < 0 ? "−" : "±") + Math.abs(p) + "%";
}

let origin = NaN; // of a host that is live: seconds since 1970; NaN = times are since the start of a run

/** signedPercent writes a relative difference with one digit: +3.1%. */
export function signedPercent(x: number): string {
  if (!Number.isFinite(x)) return "–";
  const p = Math.round(x * 1000) / 10;
  return (p > 0 ? "+" : p < 0 ? "−" : "±") + Math.abs(p).toFixed(1) + "%";
}

/** setOrigin has times shown as those of the clock. */
export function setOrigin(seconds: number): void {
  origin = seconds;
}

/** sinceOrigin returns a time of a document as seconds since the start of the run; NaN = it is none. */
export function sinceOrigin(text: string | undefined): number {
  return text ? Date.parse(text) / 1000 - origin : NaN;
}

/** clock writes a time of a document for people: the time of day, with its date unless that is today. */
export function clock(text: string | undefined): string {
  return text ? clockOf(Date.parse(text)) : "–";
}

function clockOf(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  const d = new Date(ms), now = new Date(), two = (n: number) => String(n).padStart(2, "0");
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  if (d.toDateString() === now.toDateString()) return time;
  return `${d.getFullYear() === now.getFullYear() ? "" : `${d.getFullYear()}-`}${two(d.getMonth() + 1)}-${two(d.getDate())} ${time.slice(0, 5)}`;
}

/** shift is what round times of the clock differ by from round seconds since the origin. */
function shift(): number {
  return Number.isNaN(origin) ? 0 : origin - new Date(origin * 1000).getTimezoneOffset() * 60;
}

/** ticks returns round times between two, at most so many. */
export function ticks(from: number, to: number, most: number): number[] {
  const steps = [0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
    172800, 432000, 864000, 2592000, 7776000, 31536000];
  const step = steps.find((s) => (to - from) / s <= most) ?? 31536000 * Math.ceil((to - from) / 31536000 / most);
  const list = [], by = shift();
  for (let t = Math.ceil((from + by) / step) * step - by; t <= to; t += step) list.push(t);
  return list;
}

/** tickAt places the label of an axis at a part of its length, so that none is cut at an end. */
export function tickAt(part: number): { left: string; transform: string } {
  return { left: `${part * 100}%`, transform: `translateX(-${part < 0.04 ? 0 : part > 0.95 ? 100 : 50}%)` };
}

/** at writes a time since the start of the run; of a host that is live the time of its clock. */
export function at(s: number): string {
  if (!Number.isFinite(s)) return "–";
  if (!Number.isNaN(origin)) return clockOf((origin + s) * 1000);
  const whole = Math.floor(s + 1e-9), two = (n: number) => String(n).padStart(2, "0");
  const days = Math.floor(whole / 86400), rest = whole % 86400;
  const clock = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
  if (days > 0) return rest === 0 ? `${days}d` : `${days}d ${clock}`;
  return clock;
}
