import type { Member } from "../../../clusters/member.ts";
import type { Clock } from "../../../runtime/clock.ts";

// A feature gate that is turned off restarts the API server without an event.
const HOLDS_MS = 10 * 60_000;

interface Known {
  readonly version: string | undefined;
  readonly until: number;
  readonly fields: Set<string>;
}

/** Remembers which of the fields that API servers may drop each member keeps. */
export class SupportedFields {
  readonly #clock: Pick<Clock, "now">;
  readonly #members = new Map<string, Known>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  unknown(member: Member, paths: readonly string[]): string[] {
    const known = this.#known(member);
    return paths.filter((path) => known?.fields.has(fieldOf(path)) !== true);
  }

  learn(member: Member, paths: readonly string[]): void {
    let known = this.#known(member);
    if (known === undefined) {
      known = { version: member.probed.version, until: this.#clock.now() + HOLDS_MS, fields: new Set() };
      this.#members.set(member.name, known);
    }
    for (const path of paths) known.fields.add(fieldOf(path));
  }

  #known({ name, probed }: Member): Known | undefined {
    const known = this.#members.get(name);
    return known !== undefined && known.version === probed.version && this.#clock.now() < known.until
      ? known
      : undefined;
  }
}

function fieldOf(path: string): string {
  return path.replaceAll(/\[[^\]]*\]/g, "[]");
}
