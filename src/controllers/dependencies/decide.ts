import type { Stored } from "../../api/kubernetes.ts";
import { standsFor } from "../../copies/copy.ts";
import { copyPatch, hasMetadataOf, metadataPatch, mustBeReplaced, toCopy } from "../../copies/dependencies.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { type DependencyKind, isClass } from "../../pods/dependencies.ts";
import { LINGERS_MS } from "../copying/idle.ts";
import type { Action, CopyRef, Digested, Observed } from "./model.ts";

/** What to do for one copy now, and when to look again when nothing happens. */
export interface CopyDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Makes the copy when it is used, keeps it like its source, and removes it when nobody uses it any more. */
export function decide(observed: Observed, now: number): CopyDecision {
  const {
    ref,
    host,
    usable,
    copy,
    source,
    used,
    mounted,
    idleSince,
    refused,
    contestedUntil,
    keptUntil = 0,
    leaving = false,
  } = observed;
  // What becomes usable or readable is an event of its own.
  if (!usable) return { actions: [], outcome: "Unreachable" };
  const resting =
    refused !== undefined && refused.ofEarlier !== true ? decideRefused(ref, refused.until, now) : undefined;
  if (copy === undefined) {
    if (resting !== undefined) return resting;
    if (!used || source.state !== "present") return { actions: [], outcome: "Idle" };
    if (contestedUntil !== undefined) return { actions: [], outcome: "Contested", requeueAt: contestedUntil };
    const object = toCopy(ref.kind, source.object, host);
    const sourceVersion = source.object.metadata.resourceVersion;
    return { actions: [{ type: "create", ref, object, sourceVersion }], outcome: "Copying" };
  }
  if (copy.metadata.deletionTimestamp !== undefined) return { actions: [], outcome: "Removing" };
  const { uid, resourceVersion } = copy.metadata;
  const remove: Action = { type: "delete", ref, uid, resourceVersion };
  // An answer that was lost leaves it open whether the copy goes: pods that came since get one that stays.
  if (leaving && used) return { actions: [remove], outcome: "Replacing" };
  if (!used && !mounted) {
    const removeAt = idleSince + LINGERS_MS;
    if (now < removeAt) return { actions: [], outcome: "Idle", requeueAt: removeAt };
    if (now < keptUntil) return { actions: [], outcome: "UsedByOthers", requeueAt: keptUntil };
    return { actions: [remove], outcome: "Removing" };
  }
  // As on a node: what pods can do without is gone from them, and from those that come, when its source is.
  if (source.state === "missing" && used && observed.required === false) {
    return { actions: [remove], outcome: "Removing" };
  }
  // As on a node: what runs keeps what it has when its source is deleted. A delegate without a proxy gets nothing new.
  if (!used || source.state !== "present" || inStep(ref.kind, copy, source.object, host)) {
    // What was refused is not wanted any more.
    return { actions: refused === undefined ? [] : [{ type: "reconsider", ref }], outcome: "InStep" };
  }
  if (resting !== undefined) return resting;
  if (contestedUntil !== undefined && standsFor(copy, source.object)) {
    return { actions: [], outcome: "Contested", requeueAt: contestedUntil };
  }
  // Neither may be changed in place; it is made again at once.
  if (mustBeReplaced(ref.kind, copy, source.object) || isFrozen(copy, source.object)) {
    // The last delegate that ends is an event of its own.
    if (isHeldByUsers(ref.kind, copy, source.object, mounted)) return { actions: [], outcome: "InUse" };
    if (now < keptUntil) return { actions: [], outcome: "UsedByOthers", requeueAt: keptUntil };
    return { actions: [remove], outcome: "Replacing" };
  }
  const patch =
    copy.digest === source.object.digest
      ? metadataPatch(ref.kind, copy, source.object, host)
      : copyPatch(ref.kind, copy, source.object, host);
  const sourceVersion = source.object.metadata.resourceVersion;
  return { actions: [{ type: "patch", ref, uid, version: resourceVersion, patch, sourceVersion }], outcome: "Copying" };
}

function decideRefused(ref: CopyRef, until: number, now: number): CopyDecision {
  if (now < until) return { actions: [], outcome: "Refused", requeueAt: until };
  return { actions: [{ type: "reconsider", ref }], outcome: "Refused" };
}

/** True when the copy is what its source is now. */
function inStep(kind: DependencyKind, copy: Stored<Digested>, source: Stored<Digested>, host: HostIdentity): boolean {
  return hasContentOf(copy, source) && hasMetadataOf(kind, copy, source, host);
}

/**
 * True when pods may come that use the copy. What else it says is brought to it meanwhile; but webhooks of clouds read an account's
 * annotations when a pod is created.
 */
export function servesPods(
  kind: DependencyKind,
  copy: Stored<Digested>,
  source: Stored<Digested>,
  host: HostIdentity,
): boolean {
  return kind === "ServiceAccount" ? inStep(kind, copy, source, host) : hasContentOf(copy, source);
}

/**
 * Reports whether the copy is to be replaced, and cannot be as long as pods use it: a kubelet looks a RuntimeClass up whenever it makes
 * a pod's sandbox.
 */
export function isHeldByUsers(
  kind: DependencyKind,
  copy: Stored<Digested>,
  source: Stored<Digested>,
  hasUsers: boolean,
): boolean {
  return hasUsers && isClass(kind) && mustBeReplaced(kind, copy, source);
}

function hasContentOf(copy: Stored<Digested>, source: Stored<Digested>): boolean {
  return copy.digest === source.digest && standsFor(copy, source);
}

function isFrozen(copy: Stored<Digested>, source: Stored<Digested>): boolean {
  return copy.immutable === true && copy.digest !== source.digest;
}
