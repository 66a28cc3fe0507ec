import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Drift } from "../../copies/kind.ts";
import type { HoldReason } from "../../runtime/held-writes.ts";

declare const copyKeyBrand: unique symbol;
/** `member/Kind/namespace/name`: names one copy. */
export type CopyKey = string & { readonly [copyKeyBrand]: true };

/** Names an object: the copy's name, which is the source's for most kinds. `namespace` is empty for cluster-scoped kinds. */
export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** The parts of a copy's key. */
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

/** An object of the host, as far as it is known. */
export type Source<T extends KubeObject> =
  | { readonly state: "present"; readonly object: Stored<T> }
  /** The namespace was read without it, or the member is not given the object. */
  | { readonly state: "missing" }
  /** The namespace was not read yet, or cannot be: `message` says why. */
  | { readonly state: "unknown"; readonly message?: string };

/**
 * How much the users in a member need a copy. `needed`: the copy is made. `kept`: it follows its source if it is there.
 * `frozen`: it stays as it is. `unused`: it goes after a while.
 */
export type Demand = "needed" | "kept" | "frozen" | "unused";

/** The users' claim on a copy. */
export interface Use {
  readonly demand: Demand;
  /** The copy stays when its source is deleted, as on a node. */
  readonly outlivesSource?: boolean;
  /** A user that runs keeps the copy from being replaced. */
  readonly preventsReplacement?: boolean;
}

/** Everything that a decision on one copy depends on. */
export interface Observed<T extends KubeObject> {
  readonly ref: CopyRef;
  /** The member answers, and its copies and their users have been read. */
  readonly usable: boolean;
  readonly source: Source<T>;
  readonly use: Use;
  /** When the copy was first seen without users; epoch ms. */
  readonly idleSince: number;
  readonly copy?: Stored<T>;
  /** Absent without a copy or a source. */
  readonly drift?: Drift;
  /** The copy's deletion was sent, and may still happen. */
  readonly leaving?: boolean;
  /** The hold on writes of this version of the source; `until` is epoch ms. */
  readonly held?: { readonly reason: HoldReason; readonly until: number };
  /** The member refused the copy, and users were told so: when it may be tried again; epoch ms. */
  readonly refusedUntil?: number;
  /** Users that the host does not know keep the copy: when the member is asked again; epoch ms. */
  readonly keptUntil?: number;
}

/** A write in a member. */
export type Action<T extends KubeObject> =
  | { readonly type: "create"; readonly ref: CopyRef; readonly source: Stored<T> }
  | { readonly type: "patch"; readonly ref: CopyRef; readonly source: Stored<T>; readonly copy: Stored<T> }
  /** A copy that has changed since is not deleted. */
  | { readonly type: "delete"; readonly ref: CopyRef; readonly copy: Stored<T> }
  /** Forgets a refusal, so that waiting users may try the member again. */
  | { readonly type: "reconsider"; readonly ref: CopyRef };
