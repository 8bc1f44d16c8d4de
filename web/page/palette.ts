// Colours. Every hue stands at least 3:1 against its ground, and at least 15 by CIEDE2000 from every other one, in normal
// vision and in three simulated deficiencies. The test of the palette measures that.

export interface Palette {
  ground: string;
  neutral: string;
  ink: string;
  hues: string[];
}

export const light: Palette = {
  ground: "#ffffff",
  neutral: "#8a8f98",
  ink: "#1b1f24",
  hues: ["#6b87f9", "#c10000", "#e76406", "#0f6d5c", "#38385d", "#ac8e76", "#4b00f3", "#7c0927"],
};

export const night: Palette = {
  ground: "#14171c",
  neutral: "#868c96",
  ink: "#e6e9ee",
  hues: ["#778eff", "#f40070", "#ffaf54", "#6a51ce", "#ddd0bb", "#14795f", "#86d9ff", "#6c7004"],
};

/** losses are the hues of the classes of losses, by their word: a number of a hue, or a strength of the neutral. */
export const lossColours: Record<string, { hue?: number; letter: string; title: string; explains: string }> = {
  useful: { hue: 0, letter: "U", title: "useful", explains: "an attempt works, and its work lasts" },
  redone: { hue: 1, letter: "R", title: "redone", explains: "an attempt works, and what it does is lost later" },
  "coming-up": { hue: 2, letter: "C", title: "coming up", explains: "an attempt starts, or restores what it saved" },
  stopping: { hue: 3, letter: "S", title: "stopping", explains: "an attempt was ordered to stop and has not gone" },
  down: { hue: 4, letter: "D", title: "down", explains: "its node is down" },
  drained: { hue: 4, letter: "d", title: "drained", explains: "its node is to be given to no new job" },
  foreign: { hue: 4, letter: "F", title: "foreign", explains: "someone who is not a job of ours uses it" },
  quarantined: { hue: 4, letter: "Q", title: "quarantined", explains: "starts on it failed" },
  asleep: { hue: 5, letter: "a", title: "asleep", explains: "its node is asleep" },
  booting: { hue: 5, letter: "B", title: "booting", explains: "its node wakes up" },
  reserved: { hue: 6, letter: "H", title: "held for a job", explains: "it is to be given to a job that has not started yet" },
  unwanted: { letter: "–", title: "idle, no one waits", explains: "no job waits that could use it" },
  "too-few": { letter: "<", title: "idle, too few", explains: "jobs wait, and each needs more than are free" },
  apart: { letter: "÷", title: "idle, not together", explains: "enough are free for a waiting job, but spread over nodes" },
  policy: { hue: 7, letter: "P", title: "idle, policy", explains: "a waiting job fits, and is not started" },
};

/** pixel returns a colour as a number of an ImageData seen as Uint32Array. */
export function pixel(hex: string): number {
  const n = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}

/** blend mixes two colours; 1 = all of a. */
export function blend(a: string, b: string, part: number): string {
  const x = parseInt(a.slice(1), 16), y = parseInt(b.slice(1), 16);
  const mix = (shift: number) => {
    const p = (x >> shift) & 255, q = (y >> shift) & 255;
    return Math.round(p * part + q * (1 - part));
  };
  return "#" + ((1 << 24) | (mix(16) << 16) | (mix(8) << 8) | mix(0)).toString(16).slice(1);
}
