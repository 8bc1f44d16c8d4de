// Reads packed columns: trainyard.columns/v1, as package report writes them.

export type Ints = Int32Array | Float64Array;

interface Spec {
  name: string;
  kind: "int" | "text" | "word" | "numbered";
  at: number;
  bytes: number;
  planes?: number;
  signed?: boolean;
  delta?: boolean;
  words?: string[];
}

interface Header {
  schema: string;
  tables: { name: string; rows: number; columns: Spec[] }[];
}

/** Table is one table of columns. A column that is not there is an error that names it. */
export class Table {
  constructor(
    readonly name: string,
    readonly rows: number,
    private numbers: Map<string, Ints>,
    private texts: Map<string, string[]>,
  ) {}

  ints(name: string): Ints {
    const c = this.numbers.get(name);
    if (!c) throw new Error(`table ${this.name}: no column ${name}`);
    return c;
  }

  strings(name: string): string[] {
    const c = this.texts.get(name);
    if (!c) throw new Error(`table ${this.name}: no column ${name}`);
    return c;
  }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readInts(data: Uint8Array, spec: Spec, rows: number): Ints {
  const planes = spec.planes ?? 0;
  const out: Ints = planes <= 3 && !spec.delta ? new Int32Array(rows) : new Float64Array(rows);
  let scale = 1;
  for (let p = 0; p < planes; p++, scale *= 256) {
    const at = spec.at + p * rows;
    for (let i = 0; i < rows; i++) out[i] += data[at + i] * scale;
  }
  if (spec.signed) {
    for (let i = 0; i < rows; i++) {
      const u = out[i];
      out[i] = u % 2 === 0 ? u / 2 : -(u + 1) / 2;
    }
  }
  if (spec.delta) for (let i = 1; i < rows; i++) out[i] += out[i - 1];
  return out;
}

function readTexts(data: Uint8Array, spec: Spec, lengths: Ints): string[] {
  const decoder = new TextDecoder();
  const out = new Array<string>(lengths.length);
  let at = spec.at;
  for (let i = 0; i < lengths.length; i++) {
    out[i] = decoder.decode(data.subarray(at, at + lengths[i]));
    at += lengths[i];
  }
  return out;
}

/** decode reads the block of the given name. What is wrong with it is an error that names the block. */
export async function decode(block: string, base64: string): Promise<Map<string, Table>> {
  try {
    const all = await gunzip(bytesOf(base64.trim()));
    const size = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + size))) as Header;
    if (header.schema !== "trainyard.columns/v1") throw new Error(`schema ${header.schema}`);
    const data = all.subarray(4 + size);
    const tables = new Map<string, Table>();
    for (const t of header.tables) {
      const numbers = new Map<string, Ints>();
      const texts = new Map<string, string[]>();
      for (const spec of t.columns) {
        if (spec.at + spec.bytes > data.length) throw new Error(`column ${spec.name} is cut off`);
        if (spec.kind === "text") {
          texts.set(spec.name, readTexts(data, spec, numbers.get(spec.name + ".length")!));
          continue;
        }
        if (spec.kind === "numbered") {
          const number = numbers.get(spec.name + ".number")!;
          texts.set(spec.name, texts.get(spec.name + ".before")!.map((s, i) => (number[i] < 0 ? s : s + number[i])));
          continue;
        }
        const list = readInts(data, spec, t.rows);
        numbers.set(spec.name, list);
        if (spec.kind === "word") {
          const words = spec.words ?? [];
          texts.set(spec.name, Array.from(list, (n) => words[n]));
        }
      }
      tables.set(t.name, new Table(t.name, t.rows, numbers, texts));
    }
    return tables;
  } catch (e) {
    throw new Error(`block ${block} of this file is damaged: ${e instanceof Error ? e.message : String(e)}`);
  }
}
