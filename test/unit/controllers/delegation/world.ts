import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Amounts } from "../../../../src/api/quantity.ts";
import type { MemberView, Memory, Observed } from "../../../../src/controllers/delegation/decisions/model.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import { type PodParts, pod, proxyPod } from "../../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };

/** A member with room for 100 one-core pods, reachable and read. */
export function member(name: string, parts: Partial<MemberView> & { readonly used?: number } = {}): MemberView {
  const { used = 0, ...view } = parts;
  const allocatable = { cpu: 100, pods: 100 };
  return {
    name,
    reachable: true,
    reachableSince: 0,
    read: true,
    candidate: { name, labels: {}, allocatable, largestNode: allocatable, used: { pods: used } },
    scheduleTimeoutMs: 30_000,
    nodesVersion: 1,
    ...view,
  };
}

/** A member whose pods of this host below priority 1000, all of priority 0, request so much. */
export function preemptibleIn(view: MemberView, amounts: Amounts): MemberView {
  return { ...view, candidate: { ...view.candidate, preemptible: (priority) => (priority > 0 ? amounts : {}) } };
}

/** What a delegation decision sees: by default a fresh proxy, nothing remembered, every member allowed. */
export function world(proxy: Stored<Pod> | undefined, members: MemberView[], parts: Partial<Observed> = {}): Observed {
  return {
    ref: { namespace: "team", name: "web-0" },
    host,
    proxy,
    members,
    memory: memory(),
    excludes: () => undefined,
    apiAccess: () => ({ mode: "member" }),
    outOfService: () => false,
    ...parts,
  };
}

export function memory(parts: Partial<Memory> = {}): Memory {
  return { fresh: true, attempts: new Map(), ...parts };
}

/** Its member was asked for the recorded delegate, and does not have it. */
export const gone: Pick<Observed, "memory"> = { memory: memory({ gone: "delegate-uid" }) };

/** The delegate of a proxy, as its member holds it. */
export function delegateOf(proxy: Stored<Pod>, { metadata, ...parts }: PodParts = {}): Stored<Pod> {
  const made = toDelegate(proxy, host);
  return pod({ uid: "delegate-uid", ...parts, metadata: { ...made.metadata, name: "web-0", ...metadata } });
}

/** A proxy that was given to `west` with `delegate-uid`. */
export function boundProxy({ metadata, spec, ...parts }: PodParts = {}): Stored<Pod> {
  const annotations = { [CLUSTER_ANNOTATION]: "west", [DELEGATE_UID_ANNOTATION]: "delegate-uid" };
  return proxyPod({
    ...parts,
    metadata: { ...metadata, annotations: { ...annotations, ...metadata?.annotations } },
    spec: { nodeName: "legation-west", ...spec },
  });
}
