import type { Kind } from "./kinds.ts";

type MemberName = "west" | "east";

/** An object of a member. */
export interface InMember {
  readonly member: MemberName;
  readonly kind: Kind;
  readonly name: string;
  readonly uid: string;
}

/** Everything that authors and clients of members did to whole objects, as far as the rules depend on it. */
export interface Ledger {
  /** Objects of members' own that Legation must not touch: their versions when they were made. */
  readonly foreign: (InMember & { readonly resourceVersion: string })[];
  /** Copies whose field another manager of the member took over. */
  readonly taken: InMember[];
  /** Copies that carried the marks of a delivery tool, by which it deleted them. */
  readonly pruned: InMember[];
  /** Objects that members keep: adopted ones, and copies whose author asked for it. */
  readonly kept: Omit<InMember, "uid">[];
  /** `kind/name` of copies that no client of a member deletes any more. */
  readonly spared: Set<string>;
  /** Whole Jobs whose copy was deleted in a member. */
  readonly lostJobs: Set<string>;
  /** How often each copy was changed by hand. More often than five times a minute it is left as it is. */
  readonly drifts: Map<string, number>;
  /** `member/kind` whose definition, or whose namespace, was gone for a while, with all objects. */
  readonly emptied: Set<string>;
}

/** Returns an empty ledger. */
export function newLedger(): Ledger {
  return {
    foreign: [],
    taken: [],
    pruned: [],
    kept: [],
    spared: new Set(),
    lostJobs: new Set(),
    drifts: new Map(),
    emptied: new Set(),
  };
}

const MOST_DRIFTS = 3;
// The third time is contested, unless the controller was new meanwhile.
const CONTESTED_TAKES = 3;

/** Reports whether the copy may be changed by hand once more, and counts it. */
export function mayDrift({ drifts, spared }: Ledger, { member, kind, name }: Omit<InMember, "uid">): boolean {
  const key = `${member}/${kind}/${name}`;
  const count = drifts.get(key) ?? 0;
  drifts.set(key, count + 1);
  return count < MOST_DRIFTS && !spared.has(`${kind}/${name}`);
}

/** Reports whether the copy's field was taken so often that Legation may have given in for a while. */
export function mayBeContested({ taken }: Ledger, copy: Omit<InMember, "uid">): boolean {
  const isOfCopy = ({ member, kind, name }: InMember): boolean =>
    member === copy.member && kind === copy.kind && name === copy.name;
  return taken.filter(isOfCopy).length >= CONTESTED_TAKES;
}
