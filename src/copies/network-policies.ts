import { jsonEqual } from "../api/json.ts";
import { COPY_ANNOTATION, HOST_LABEL } from "../api/keys.ts";
import type { NetworkPolicy, NetworkPolicyPeer, Stored, WireLabelSelector } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;

const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";
const LONGEST_NAME = 253;
// A prefix of the host's uid, unique among a member's hosts.
const HOST_CHARACTERS = 8;

/** Caches the last comparison of each copy with its source. */
const compared = new WeakMap<object, { readonly source: object; readonly same: boolean }>();

/** Reports whether the policy stays on the host: its author excluded it, or it is another host's copy. */
export function staysOnHost({ metadata }: NetworkPolicy): boolean {
  return metadata?.annotations?.[COPY_ANNOTATION] === "false" || metadata?.labels?.[HOST_LABEL] !== undefined;
}

/** Returns the name of a policy's copy. Its own name could meet a policy of the member or of another host. */
export function policyCopyName({ metadata: { name, uid } }: Stored<NetworkPolicy>, hostId: string): string {
  const suffix = `.legation-${hostId.slice(0, HOST_CHARACTERS)}`;
  return `${name.length + suffix.length <= LONGEST_NAME ? name : uid}${suffix}`;
}

export function toPolicyCopy(source: Stored<NetworkPolicy>, host: HostIdentity): NetworkPolicy {
  const { namespace = "" } = source.metadata;
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: policyCopyName(source, host.id), namespace, ...copyMetadata(bare(source), host) },
    spec: forDelegates(source, host.id),
  };
}

export function hasRulesOf(copy: Stored<NetworkPolicy>, source: Stored<NetworkPolicy>, host: HostIdentity): boolean {
  // Cached: every waiting pod asks for each member.
  const known = compared.get(copy);
  if (known?.source === source) return known.same;
  const same = jsonEqual(copy.spec, forDelegates(source, host.id));
  compared.set(copy, { source, same });
  return same;
}

/** Reports whether the copy also has its owner annotation. */
export function isPolicyLike(copy: Stored<NetworkPolicy>, source: Stored<NetworkPolicy>, host: HostIdentity): boolean {
  return hasRulesOf(copy, source, host) && wantedMetadata(copy, bare(source), host) === undefined;
}

/** Returns the JSON patch of a copy, with uid and resourceVersion as preconditions. */
export function policyCopyPatch(
  copy: Stored<NetworkPolicy>,
  source: Stored<NetworkPolicy>,
  host: HostIdentity,
): object[] {
  return [...copyMetadataPatch(copy, bare(source), host), setField("/spec", forDelegates(source, host.id))];
}

/** Copies no labels and annotations: GitOps tools would take the copy for theirs and prune it. */
function bare({ metadata, ...rest }: Stored<NetworkPolicy>): Stored<NetworkPolicy> {
  const { labels: _, annotations: __, ...others } = metadata;
  return { ...rest, metadata: others };
}

/**
 * Returns the spec restricted to this host's delegates, also as peers of the same namespace. Peers of other
 * namespaces are the member's, such as its DNS.
 */
function forDelegates({ metadata: { namespace }, spec = {} }: Stored<NetworkPolicy>, hostId: string): Spec {
  const peers = (all: readonly NetworkPolicyPeer[]): NetworkPolicyPeer[] =>
    all.map((peer) =>
      isOfNamespace(peer, namespace) ? { ...peer, podSelector: ofHost(peer.podSelector, hostId) } : peer,
    );
  return {
    ...spec,
    podSelector: ofHost(spec.podSelector, hostId),
    ...(spec.ingress && {
      ingress: spec.ingress.map((rule) => (rule.from ? { ...rule, from: peers(rule.from) } : rule)),
    }),
    ...(spec.egress && { egress: spec.egress.map((rule) => (rule.to ? { ...rule, to: peers(rule.to) } : rule)) }),
  };
}

/** Reports whether the peer selects the policy's own namespace, also by name. */
function isOfNamespace({ namespaceSelector, ipBlock }: NetworkPolicyPeer, namespace: string | undefined): boolean {
  const other = namespaceSelector ?? ipBlock ?? undefined;
  return other === undefined || jsonEqual(other, { matchLabels: { [NAMESPACE_NAME_LABEL]: namespace } });
}

function ofHost(selector: WireLabelSelector | null | undefined, hostId: string): WireLabelSelector {
  return { ...selector, matchLabels: { ...selector?.matchLabels, [HOST_LABEL]: hostId } };
}
