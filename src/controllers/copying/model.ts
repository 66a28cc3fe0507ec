import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Drift } from "../../copies/kind.ts";
import type { Source } from "../../copies/source.ts";
import type { HoldReason } from "../../runtime/held-writes.ts";

declare const copyKeyBrand: unique symbol;
/** `member/Kind/namespace/name`: names one copy. */
export type CopyKey = string & { readonly [copyKeyBrand]: true };

/** The copy's name is the source's for most kinds. `namespace` is empty for cluster-scoped kinds. */
export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface CopyRef extends ObjectName {
  readonly member: string;
}

export function copyKey({ member, kind, namespace, name }: CopyRef): CopyKey {
  return `${member}/${kind}/${namespace}/${name}` as CopyKey;
}

export function copyRef(key: CopyKey): CopyRef {
  const [member = "", kind = "", namespace = "", name = ""] = key.split("/");
  return { member, kind, namespace, name };
}

/**
 * `needed`: made. `kept`: follows its source if it is there. `frozen`: stays as it is. `unused`: goes after a while.
 */
export type Demand = "needed" | "kept" | "frozen" | "unused";

export interface Use {
  readonly demand: Demand;
  /** The copy stays when its source is deleted, as on a node. */
  readonly outlivesSource?: boolean;
  /** A user that runs keeps the copy from being replaced. */
  readonly preventsReplacement?: boolean;
}

export interface Observed<T extends KubeObject> {
  readonly ref: CopyRef;
  readonly usable: boolean;
  readonly source: Source<T>;
  readonly use: Use;
  /** When the copy was first seen without users; epoch ms. */
  readonly unusedSince: number;
  readonly copy?: Stored<T>;
  readonly drift?: Drift;
  readonly leaving?: boolean;
  /** The hold on writes of this version of the source; `until` is epoch ms. */
  readonly held?: { readonly reason: HoldReason; readonly until: number };
  /** When fields that other managers took may be put back; epoch ms. Absent: there are none. */
  readonly contestedUntil?: number;
  /** Epoch ms. */
  readonly refusedUntil?: number;
  /** End of the hold by users that the host does not know; epoch ms. */
  readonly keptUntil?: number;
  /** When a refused deletion may be tried again; epoch ms. */
  readonly deletionRefusedUntil?: number;
  /** The host's object, also if the member is not given it. Its author is told of refused deletions. */
  readonly onHost?: Stored<T>;
}

export type Action<T extends KubeObject> =
  | { readonly type: "create"; readonly ref: CopyRef; readonly source: Stored<T> }
  | { readonly type: "patch"; readonly ref: CopyRef; readonly source: Stored<T>; readonly copy: Stored<T> }
  /** A copy that has changed since is not deleted. */
  | { readonly type: "delete"; readonly ref: CopyRef; readonly copy: Stored<T>; readonly onHost?: Stored<T> }
  | { readonly type: "reconsider"; readonly ref: CopyRef };
