import type { WrittenObject } from "../shared/documents.ts";
import type { ObjectOverride } from "./patches.ts";
import type { ChosenClusters } from "./placement.ts";

/** A cluster's share, as in `legation.dev/scheduling-preferences`. */
interface Share {
  readonly weight?: number | undefined;
  readonly minReplicas?: number | undefined;
  readonly maxReplicas?: number | undefined;
}

/** How many pods each cluster has: the whole number each, or a part of it. */
export type Counts =
  | { readonly how: "each" }
  | {
      readonly how: "divided";
      /** Numbers for all clusters together that replace the object's own. */
      readonly totals?: Readonly<Record<string, number>>;
      /** Absent: by the room of clusters. */
      readonly preferences?: { readonly rebalance?: boolean; readonly clusters: Readonly<Record<string, Share>> };
    };

/** An ordinary object, and where and how another project has it run. */
export interface Wish {
  readonly object: WrittenObject;
  /** The name of the foreign object in findings. */
  readonly source: string;
  /** Choices of clusters, an earlier one preferred. Empty: any cluster. */
  readonly choices: readonly ChosenClusters[];
  readonly counts: Counts;
  readonly overrides: readonly ObjectOverride[];
  /** The fields of the foreign object by which copies stay when the object is deleted, and take over a member's own. */
  readonly orphan?: string | undefined;
  readonly adopt?: string | undefined;
}

export type Numbers = Readonly<Record<string, number>>;
