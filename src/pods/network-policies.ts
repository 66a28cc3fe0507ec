import { COPY_ANNOTATION, HOST_LABEL } from "../api/keys.ts";
import type { LabelSelector, NetworkPolicy, NetworkPolicyPeer, Stored } from "../api/kubernetes.ts";
import type { HostIdentity } from "./delegate.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./dependencies-copy.ts";
import { jsonEqual } from "./equal.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;

const LONGEST_NAME = 253;
// As much of the host's uid as no two hosts of a member have in common.
const HOST_CHARACTERS = 8;

/** True for what no member gets: its author has said so. */
export function staysOnHost({ metadata }: NetworkPolicy): boolean {
  return metadata?.annotations?.[COPY_ANNOTATION] === "false";
}

/**
 * The name of the policy's copy in members. Nothing refers to a NetworkPolicy by its name: with one of its own it meets neither the
 * member's policy of that name, as where the same manifests are applied to every cluster, nor another host's.
 */
export function policyCopyName({ metadata: { name, uid } }: Stored<NetworkPolicy>, hostId: string): string {
  const suffix = `.legation-${hostId.slice(0, HOST_CHARACTERS)}`;
  return `${name.length + suffix.length <= LONGEST_NAME ? name : uid}${suffix}`;
}

/** The policy to create in a member for one of the host. */
export function toPolicyCopy(source: Stored<NetworkPolicy>, host: HostIdentity): NetworkPolicy {
  const { namespace = "" } = source.metadata;
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: policyCopyName(source, host.id), namespace, ...copyMetadata(source, host) },
    spec: forDelegates(source.spec, host.id),
  };
}

/** True when the copy says what its source says. */
export function isPolicyLike(copy: Stored<NetworkPolicy>, source: Stored<NetworkPolicy>, host: HostIdentity): boolean {
  return jsonEqual(copy.spec, forDelegates(source.spec, host.id)) && wantedMetadata(copy, source, host) === undefined;
}

/** JSON patch that makes a copy like its source; it is refused for a copy that has changed since. */
export function policyCopyPatch(
  copy: Stored<NetworkPolicy>,
  source: Stored<NetworkPolicy>,
  host: HostIdentity,
): object[] {
  return [...copyMetadataPatch(copy, source, host), setField("/spec", forDelegates(source.spec, host.id))];
}

/**
 * The spec for this host's delegates alone: in the member's namespace there may be pods that the host's authors know nothing of. As
 * peers, pods of the policy's own namespace are delegates, too; other namespaces are those of the member, as for its name service.
 */
function forDelegates(spec: Spec = {}, hostId: string): Spec {
  const peers = (all: readonly NetworkPolicyPeer[]): NetworkPolicyPeer[] =>
    all.map((peer) => ofNamespace(peer, hostId));
  return {
    ...spec,
    podSelector: ofHost(spec.podSelector, hostId),
    ...(spec.ingress && {
      ingress: spec.ingress.map((rule) => (rule.from ? { ...rule, from: peers(rule.from) } : rule)),
    }),
    ...(spec.egress && { egress: spec.egress.map((rule) => (rule.to ? { ...rule, to: peers(rule.to) } : rule)) }),
  };
}

function ofNamespace(peer: NetworkPolicyPeer, hostId: string): NetworkPolicyPeer {
  const elsewhere = (peer.namespaceSelector ?? peer.ipBlock ?? null) !== null;
  return elsewhere ? peer : { ...peer, podSelector: ofHost(peer.podSelector, hostId) };
}

function ofHost(selector: LabelSelector | null | undefined, hostId: string): LabelSelector {
  return { ...selector, matchLabels: { ...selector?.matchLabels, [HOST_LABEL]: hostId } };
}
