import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { type HostIdentity, toDelegate } from "../../../../src/pods/delegate.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";

/** A pod that mounts a token of the host, and its delegate in `west`. */
export function podWithTokens(host: HostIdentity): { readonly proxy: Stored<Pod>; readonly delegate: Stored<Pod> } {
  const projected = { sources: [{ serviceAccountToken: { path: "token" } }] };
  const proxy = proxyPod({ spec: { nodeName: "legation-west", volumes: [{ name: "kube-api-access-1", projected }] } });
  const access = { mode: "host", address: { host: "10.0.0.1", port: "443" } } as const;
  const { metadata, spec } = toDelegate(proxy, host, access);
  const delegate = pod({ uid: "delegate-uid", metadata: { ...metadata, name: "web-0" }, ...(spec && { spec }) });
  return { proxy, delegate };
}

/** `west`, as far as tokens need it, with this one delegate. */
export function memberWith(delegate: Stored<Pod>, client: ClusterClient): Member {
  return {
    name: "west",
    client,
    memory: new ByteBudget(1e6),
    watches: new Set(),
    probed: { reachable: true },
    delegates: { list: () => [delegate], get: () => delegate },
    noteFailure: () => {},
  } as never;
}
