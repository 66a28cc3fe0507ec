import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import { everRan, isBound, isTerminal } from "../../../pods/pod-state.ts";
import { decided, type Phase } from "../decision/decision.ts";
import { boundMember, endsUnstarted, hasFinalizer, isFor, ranUntold, recordOn } from "../decision/delegates.ts";

/** A proxy that was bound without Legation's finalizer gets it first, so that no delegate is left behind. */
export const addFinalizer: Phase = ({ proxy }) =>
  hasFinalizer(proxy) ? undefined : decided("Binding", [{ type: "addFinalizer", proxyUid: proxy.metadata.uid }]);

/** The record that was sent may be on the proxy, and the host does not show it yet: no other delegate is created meanwhile. */
export const repeatRecord: Phase = ({ proxy, memory: { recording } }) => {
  const { uid: proxyUid, resourceVersion, annotations } = proxy.metadata;
  if (recording === undefined || recording.delegateUid === annotations?.[DELEGATE_UID_ANNOTATION]) return undefined;
  return everRan(proxy)
    ? undefined
    : decided("Binding", [{ type: "recordDelegate", proxyUid, resourceVersion, ...recording }]);
};

/** The delegate of a proxy that was bound without one has a node, or has run and gone: it is put on record. */
export const record: Phase = (view) => {
  const { proxy } = view;
  const { delegate, departed } = boundMember(view) ?? {};
  if (delegate === undefined) {
    const ran = ranUntold(departed === undefined ? {} : { departed }, proxy);
    return ran === undefined ? undefined : decided("Binding", [recordOn(proxy, ran)]);
  }
  // The delegate of an earlier proxy is still under that name; its end is an event of its own.
  if (!isFor(delegate, proxy) || endsUnstarted(delegate)) return decided("Withdrawing", []);
  return isBound(delegate) || isTerminal(delegate) ? decided("Binding", [recordOn(proxy, delegate)]) : undefined;
};
