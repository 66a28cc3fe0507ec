import { type Place, TURNS } from "./place-of-file.ts";

/** A test file, as far as it matters when it runs. */
export interface Timed {
  readonly place: Place;
  /** The expected duration. */
  readonly seconds: number;
  /** The file needs a set of clusters that no other file has used. */
  readonly first?: boolean;
}

/** The load of a turn so far, in seconds from the start. */
interface Taken {
  /** Start of its last file. */
  readonly begun: number;
  /** End of its last file. */
  readonly free: number;
}

/**
 * Orders files: per set of clusters the longest first, so that all lanes end together. A file is taken when its
 * predecessor gets a lane, so one runs and one waits per lane and no worker blocks a free lane.
 */
export function inOrder<T extends Timed>(files: readonly T[]): T[] {
  const turns = new Map<string, Taken>();
  const sorted = files.toSorted((a, b) => rank(a) - rank(b) || b.seconds - a.seconds);
  return sorted
    .map((file) => {
      const taken = (name: string): Taken => turns.get(name) ?? { begun: -1, free: 0 };
      const [next = ""] = TURNS[file.place].toSorted((a, b) => taken(a).free - taken(b).free);
      const { begun, free } = taken(next);
      turns.set(next, { begun: free, free: free + file.seconds });
      return { file, at: begun };
    })
    .toSorted((a, b) => a.at - b.at)
    .map(({ file }) => file);
}

function rank({ first = false, place }: Timed): number {
  // Shared clusters stop with their last file: those without Legation, and those on real nodes, before others of their turn.
  if (first || place === "pristine") return 0;
  return place === "own-real" ? 2 : 1;
}
