import type { Stored } from "../../api/kubernetes.ts";
import type { DependencyObject } from "../../copies/dependencies.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { type DependencyKey, type DependencyKind, dependencyRef } from "../../pods/dependencies.ts";

/** An object as its watch told of it, with a digest of its content; a copy's content itself is not kept. */
export interface Digested extends DependencyObject {
  readonly digest: string;
}

declare const copyKeyBrand: unique symbol;
/** `member/Kind/namespace/name`: names one copy. */
export type CopyKey = string & { readonly [copyKeyBrand]: true };

/** The parts of a copy's key. */
export interface CopyRef {
  readonly member: string;
  readonly kind: DependencyKind;
  readonly namespace: string;
  readonly name: string;
}

/** The key of a dependency's copy in a member. */
export function copyKey(member: string, key: DependencyKey): CopyKey {
  return `${member}/${key}` as CopyKey;
}

/** The parts of a copy's key. */
export function copyRef(key: CopyKey): CopyRef {
  const slash = key.indexOf("/");
  return { member: key.slice(0, slash), ...dependencyRef(dependencyOf(key)) };
}

/** The key without the member. */
export function dependencyOf(key: CopyKey): DependencyKey {
  return key.slice(key.indexOf("/") + 1) as DependencyKey;
}

/** What is known of an object of the host. */
export type Source =
  | { readonly state: "present"; readonly object: Stored<Digested> }
  /** Its namespace has been read: it is not there. */
  | { readonly state: "missing" }
  /** Its namespace is being read; the message says what is in the way of that. */
  | { readonly state: "unknown"; readonly message?: string };

/** Everything that one decision on a copy depends on. */
export interface Observed {
  readonly ref: CopyRef;
  readonly host: HostIdentity;
  /** The member's API server answers, and its copies have been read. */
  readonly usable: boolean;
  readonly copy?: Stored<Digested>;
  /** The copy's deletion was sent, and may still happen. */
  readonly leaving?: boolean;
  readonly source: Source;
  /** A proxy on the host uses it, and has been given to this member or is about to be. */
  readonly used: boolean;
  /** One of these cannot be without it. Absent: nobody has asked. */
  readonly required?: boolean;
  /** A delegate in the member names it, with or without a proxy. */
  readonly mounted: boolean;
  /** Pods of another host use the copy: until when it is not asked again whether they do; epoch ms. */
  readonly keptUntil?: number;
  /** Since when neither is so, as far as this controller knows; epoch ms. */
  readonly idleSince: number;
  /** Why the member did not take it, and until when it is not tried again; epoch ms. */
  readonly refused?: {
    readonly until: number;
    /** Its source has another version since: that one has not been tried. */
    readonly ofEarlier?: boolean;
  };
  /** Somebody else keeps changing or deleting the copy: until when it is left as it is; epoch ms. */
  readonly contestedUntil?: number;
}

/** One write in the member. */
export type Action =
  | {
      readonly type: "create";
      readonly ref: CopyRef;
      readonly object: DependencyObject;
      /** Of the source. */
      readonly sourceVersion: string;
    }
  | {
      readonly type: "patch";
      readonly ref: CopyRef;
      readonly uid: string;
      readonly version: string;
      readonly patch: readonly object[];
      readonly sourceVersion: string;
    }
  /** Nothing is deleted when the copy has changed since. */
  | { readonly type: "delete"; readonly ref: CopyRef; readonly uid: string; readonly resourceVersion: string }
  /** What the member refused may be tried again: those that wait for it shall know. */
  | { readonly type: "reconsider"; readonly ref: CopyRef };
