import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../../pods/pod-state.ts";
import type { Action } from "../decision/decision.ts";
import { awaitsDelegate, isHolder, isSurplus, surplusHolders, withdraw } from "../decision/delegates.ts";
import { hasProxy, type View } from "../decision/view.ts";

/** A member that keeps what is to be swept is asked again after this long; ms. */
export const SWEEP_AGAIN_MS = 10_000;

/** A deletion of a stray delegate never holds up the proxy, since any member can claim to have one. */
export function sweep(view: View): Action[] {
  return [...surplusDelegates(view), ...staleDelegates(view)];
}

function surplusDelegates(view: View): Action[] {
  if (!hasProxy(view) || !isBound(view.proxy)) return [];
  const { proxy } = view;
  // While it gets its first delegate, `leaveOthers` decides.
  if (awaitsDelegate(proxy) && !isDeleting(proxy) && !isTerminal(proxy)) return [];
  return surplusHolders(view)
    .filter((holder) => !isDeleting(proxy) || isSurplus(holder, proxy))
    .flatMap(withdraw)
    .map((removal) => ({ ...removal, surplus: true }));
}

function staleDelegates({ proxy, members }: View): Action[] {
  return members.filter(isHolder).flatMap(({ name, reachable, delegate }): Action[] => {
    if (!reachable || isDeleting(delegate)) return [];
    const proxyUid = ownerOf(delegate)?.uid;
    if (proxyUid === undefined || proxyUid === proxy?.metadata.uid) return [];
    // The delegate on record whose owner annotation was changed gets its own back.
    if (delegate.metadata.uid === proxy?.metadata.annotations?.[DELEGATE_UID_ANNOTATION]) return [];
    return [{ type: "sweep", member: name, uid: delegate.metadata.uid, proxyUid }];
  });
}
