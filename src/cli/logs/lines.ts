const NEWLINE = 0x0a;
const SPACE = 0x20;
// A longer line is printed in pieces, so that a log without line breaks needs little memory.
const LONGEST_LINE_BYTES = 2 ** 20;
// The kubelet writes all nine digits (pkg/kubelet/kuberuntime/logs, timeFormatOut), so that strings compare as times do.
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)$/;

/** The timestamps before the lines of a stream: absent, or requested for a later stream to begin where this one ended. */
export type Timestamps = "absent" | "kept" | "removed";

/** Splits the streams of one log into lines. A stream that follows another one repeats its last second: those lines are left out. */
export class LineReader {
  readonly #timestamps: Timestamps;
  #rest: Buffer = Buffer.alloc(0);
  #isMidLine = false;
  #last: { readonly time: string; readonly lines: number } | undefined;
  /** Lines of an earlier stream that the present one repeats. */
  #repeated: { readonly time: string; readonly lines: number } | undefined;

  constructor(timestamps: Timestamps) {
    this.#timestamps = timestamps;
  }

  /** Time from which the next stream is to begin. Undefined before the first line. */
  get lastTime(): string | undefined {
    return this.#last?.time;
  }

  /** Begins another stream of the same log. Drops a line of which only a part came. */
  restart(): void {
    this.#rest = Buffer.alloc(0);
    this.#isMidLine = false;
    this.#repeated = this.#last;
  }

  take(chunk: Buffer): Buffer[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      lines.push(...this.#complete(bytes.subarray(start, end + 1)));
      start = end + 1;
    }
    this.#rest = bytes.subarray(start);
    if (this.#rest.length > LONGEST_LINE_BYTES) {
      if (this.#isMidLine) lines.push(this.#rest);
      else lines.push(...this.#shown(this.#rest));
      this.#isMidLine = true;
      this.#rest = Buffer.alloc(0);
    }
    return lines;
  }

  /** Returns the last line of a log that does not end with a line break. */
  end(): Buffer[] {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest.length === 0 ? [] : this.#complete(rest);
  }

  #complete(line: Buffer): Buffer[] {
    const isRest = this.#isMidLine;
    this.#isMidLine = false;
    return isRest ? [line] : this.#shown(line);
  }

  #shown(line: Buffer): Buffer[] {
    if (this.#timestamps === "absent") return [line];
    const end = line.indexOf(SPACE);
    const time = line.toString("latin1", 0, Math.max(end, 0));
    // A message of the kubelet itself.
    if (!TIMESTAMP.test(time)) return [line];
    if (this.#isRepeated(time)) return [];
    this.#last = { time, lines: this.#last?.time === time ? this.#last.lines + 1 : 1 };
    return [this.#timestamps === "kept" ? line : line.subarray(end + 1)];
  }

  #isRepeated(time: string): boolean {
    const repeated = this.#repeated;
    if (repeated === undefined || time > repeated.time) {
      this.#repeated = undefined;
      return false;
    }
    if (time < repeated.time) return true;
    if (repeated.lines === 0) return false;
    this.#repeated = { time, lines: repeated.lines - 1 };
    return true;
  }
}

/** Prints lines of several logs, each whole, and with its log's name while there are several. */
export class LinePrinter {
  readonly #write: (bytes: Buffer) => void;
  /** Set once there is more than one pod. */
  isPrefixed = false;
  readonly #podUids = new Set<string>();
  /** The log whose last line has no line break yet. */
  #unended: string | undefined;

  constructor(write: (bytes: Buffer) => void) {
    this.#write = write;
  }

  /** Expects lines of a pod. */
  follow(podUid: string): void {
    this.#podUids.add(podUid);
    if (this.#podUids.size > 1) this.isPrefixed = true;
  }

  /** Prints a line or a piece of one. `log` names its log: `west/sweep-x7k2p`. */
  print(log: string, line: Buffer): void {
    const continues = this.#unended === log;
    if (this.#unended !== undefined && !continues) this.#write(Buffer.from("\n"));
    const prefix = this.isPrefixed && !continues ? Buffer.from(`[${log}] `) : Buffer.alloc(0);
    this.#write(Buffer.concat([prefix, line]));
    this.#unended = line.at(-1) === NEWLINE ? undefined : log;
  }
}
