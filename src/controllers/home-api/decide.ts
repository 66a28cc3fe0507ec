import { defined } from "../../api/defined.ts";
import { RENEW_AT_ANNOTATION, virtualNodeName } from "../../api/keys.ts";
import type { Pod, Secret, Stored } from "../../api/kubernetes.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { mountsApiSecret } from "../../pods/home-api.ts";
import { isDeleting, isTerminal } from "../../pods/pod-state.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { Action, DelegateView, IssuedTokens, Observed } from "./model.ts";

// A kubelet renews a token at 80 % of its life, and after a day at the latest.
const RENEWED_AFTER = 0.8;
const OLDEST_MS = 24 * 60 * 60_000;
// Up to a tenth earlier, so that pods that were created together do not renew together.
const SPREAD = 0.1;

/** `random` is from 0 to 1. */
export function renewalAge(lifetimeMs: number, random: number): number {
  return Math.min(lifetimeMs * RENEWED_AFTER, OLDEST_MS) * (1 - SPREAD * random);
}

export function decide(
  { proxy, delegates, untold, issued, notBefore = Number.NEGATIVE_INFINITY }: Observed,
  now: number,
  wall: number = now,
): Decision<Action> {
  const { uid: proxyUid } = proxy.metadata;
  const actions: Action[] = [];
  let requeueAt: number | undefined;
  for (const view of delegates) {
    // A change of the member or its Secrets is an event.
    if (!view.readable || !isEntitled(view, proxy)) continue;
    const { member, delegate, secret } = view;
    // The Secret goes with its delegate, whose end a watch may show later: a new one would go at once.
    if (secret === undefined && isDeleting(proxy)) continue;
    const due = Math.max(dueOf(view, issued, now, wall) ?? dueAt(secret, delegate) + now - wall, notBefore);
    if (due <= now) {
      const { uid, resourceVersion } = secret?.metadata ?? {};
      const replaces = uid === undefined || resourceVersion === undefined ? {} : { replaces: { uid, resourceVersion } };
      actions.push({ type: "issue", member, proxy, delegateUid: delegate.metadata.uid, ...replaces });
    } else {
      requeueAt = Math.min(requeueAt ?? due, due);
    }
  }
  if (untold !== undefined) actions.push({ type: "tell", proxyUid, ...untold });
  const outcome = actions.length > 0 ? "Issuing" : requeueAt === undefined ? "Idle" : "Valid";
  return { actions, outcome, ...defined({ requeueAt }) };
}

/** The API server issues tokens with `kubernetes.io.node` only after the Binding (token.go of Kubernetes). */
function isEntitled({ member, delegate }: DelegateView, proxy: Stored<Pod>): boolean {
  const { uid } = proxy.metadata;
  if (ownerOf(delegate)?.uid !== uid || !mountsApiSecret(delegate, uid)) return false;
  if ([proxy, delegate].some(isTerminal) || isDeleting(delegate)) return false;
  return proxy.spec?.nodeName === virtualNodeName(member);
}

/** Preferred to the annotation, which is for the next leader and depends on clocks. */
function dueOf(
  { secret, delegate, leftUntil }: DelegateView,
  issued: IssuedTokens | undefined,
  now: number,
  wall: number,
): number | undefined {
  const own = issued && ownDueAt(issued, now, wall);
  if (leftUntil !== undefined) {
    return issued?.delegateUid === delegate.metadata.uid ? Math.min(leftUntil, own ?? leftUntil) : leftUntil;
  }
  return issued !== undefined && isOf(issued, secret, delegate) ? own : undefined;
}

function dueAt(secret: Stored<Secret> | undefined, delegate: Stored<Pod>): number {
  if (secret === undefined) return Number.NEGATIVE_INFINITY;
  // The Secret of an earlier delegate of the same proxy goes with that delegate.
  if (!isOwnedBy(secret, delegate)) return Number.NEGATIVE_INFINITY;
  const at = Date.parse(secret.metadata.annotations?.[RENEW_AT_ANNOTATION] ?? "");
  return Number.isNaN(at) ? Number.NEGATIVE_INFINITY : at;
}

/** The monotonic clock stands still while the machine is suspended. */
function ownDueAt({ renewAt, renewAtWall }: IssuedTokens, now: number, wall: number): number {
  return Math.min(renewAt, renewAtWall + now - wall);
}

/** Reports whether the Secret is as issued. A client may write another time, to renew its tokens sooner. */
function isOf(
  { delegateUid, noted }: IssuedTokens,
  secret: Stored<Secret> | undefined,
  delegate: Stored<Pod>,
): boolean {
  return delegateUid === delegate.metadata.uid && secret?.metadata.annotations?.[RENEW_AT_ANNOTATION] === noted;
}

function isOwnedBy({ metadata }: Stored<Secret>, { metadata: { uid } }: Stored<Pod>): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
}

/** Reports whether the delegate mounts no token, as far as its spec tells. */
export function lacksTokens(delegate: Pod, proxyUid: string): boolean {
  return ownerOf(delegate)?.uid === proxyUid && !mountsApiSecret(delegate, proxyUid);
}
