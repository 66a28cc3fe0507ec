import type { NetworkPolicy, Stored } from "../../api/kubernetes.ts";
import type { HostIdentity } from "../../pods/delegate.ts";

declare const placeKeyBrand: unique symbol;
/** `member/namespace`: names the copies of one namespace in one member. */
export type PlaceKey = string & { readonly [placeKeyBrand]: true };

/** One namespace in one member. */
export interface Place {
  readonly member: string;
  readonly namespace: string;
}

/** The key of a place. */
export function placeKey({ member, namespace }: Place): PlaceKey {
  return `${member}/${namespace}` as PlaceKey;
}

/** The place that `placeKey` made the key from. */
export function placeOf(key: PlaceKey): Place {
  const slash = key.indexOf("/");
  return { member: key.slice(0, slash), namespace: key.slice(slash + 1) };
}

/** Everything that one decision on a namespace's copies depends on. */
export interface Observed {
  readonly place: Place;
  readonly host: HostIdentity;
  /** The member's API server answers, and its copies have been read. */
  readonly usable: boolean;
  /** The host's policies of the namespace that are to be copied; absent: they have not been read. */
  readonly sources?: readonly Stored<NetworkPolicy>[];
  readonly copies: readonly Stored<NetworkPolicy>[];
  /** Uids of copies whose deletion was sent, and may still happen. */
  readonly leaving: ReadonlySet<string>;
  /** Pods of the namespace are in the member, or on their way there. */
  readonly used: boolean;
  /** Since when there are none, as far as this controller knows; epoch ms. */
  readonly idleSince: number;
  /** Until when a policy is not written again, since the member has refused it or somebody there keeps changing it; epoch ms. */
  readonly restsUntil: (source: Stored<NetworkPolicy>) => number | undefined;
  /** Until when pods are kept away from the member by what it has refused; epoch ms. */
  readonly refusedUntil?: number;
}

/** One write in the member. */
export type Action =
  | {
      readonly type: "create";
      readonly place: Place;
      readonly object: NetworkPolicy;
      readonly source: Stored<NetworkPolicy>;
    }
  | {
      readonly type: "patch";
      readonly place: Place;
      readonly copy: Stored<NetworkPolicy>;
      readonly patch: readonly object[];
      readonly source: Stored<NetworkPolicy>;
    }
  /** Nothing is deleted when the copy has changed since. */
  | { readonly type: "delete"; readonly place: Place; readonly copy: Stored<NetworkPolicy> }
  /** What the member refused may be tried again: those that it has kept away shall know. */
  | { readonly type: "reconsider"; readonly place: Place };
