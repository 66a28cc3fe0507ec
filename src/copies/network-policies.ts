import { COPY_ANNOTATION, HOST_LABEL } from "../api/keys.ts";
import type { NetworkPolicy, NetworkPolicyPeer, Stored, WireLabelSelector } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { jsonEqual } from "../pods/equal.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;

const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";
const LONGEST_NAME = 253;
// A prefix of the host's uid that tells the hosts of a member apart.
const HOST_CHARACTERS = 8;

/** By copy: the source that it was last compared with, and whether it has that one's rules. */
const compared = new WeakMap<object, { readonly source: object; readonly same: boolean }>();

/** True for what no member gets: its author has said so, or it is for the delegates of another host, whose member this cluster is. */
export function staysOnHost({ metadata }: NetworkPolicy): boolean {
  return metadata?.annotations?.[COPY_ANNOTATION] === "false" || metadata?.labels?.[HOST_LABEL] !== undefined;
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
    metadata: { name: policyCopyName(source, host.id), namespace, ...copyMetadata(bare(source), host) },
    spec: forDelegates(source, host.id),
  };
}

/** True when the copy has the rules of its source. */
export function hasRulesOf(copy: Stored<NetworkPolicy>, source: Stored<NetworkPolicy>, host: HostIdentity): boolean {
  // Asked of each member for each pod that waits.
  const known = compared.get(copy);
  if (known?.source === source) return known.same;
  const same = jsonEqual(copy.spec, forDelegates(source, host.id));
  compared.set(copy, { source, same });
  return same;
}

/** True when the copy also says whose it is. */
export function isPolicyLike(copy: Stored<NetworkPolicy>, source: Stored<NetworkPolicy>, host: HostIdentity): boolean {
  return hasRulesOf(copy, source, host) && wantedMetadata(copy, bare(source), host) === undefined;
}

/** JSON patch that makes a copy like its source; it is refused for a copy that has changed since. */
export function policyCopyPatch(
  copy: Stored<NetworkPolicy>,
  source: Stored<NetworkPolicy>,
  host: HostIdentity,
): object[] {
  return [...copyMetadataPatch(copy, bare(source), host), setField("/spec", forDelegates(source, host.id))];
}

/** Nothing reads a policy's labels and annotations but tools that would take the copy for one of theirs, and remove it. */
function bare({ metadata, ...rest }: Stored<NetworkPolicy>): Stored<NetworkPolicy> {
  const { labels: _, annotations: __, ...others } = metadata;
  return { ...rest, metadata: others };
}

/**
 * The spec for this host's delegates alone: in the member's namespace there may be pods that the host's authors know nothing of. As
 * peers, pods of the policy's own namespace are delegates, too; other namespaces are those of the member, as for its name service.
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

/** True for pods of the policy's own namespace, which it may also call by its name. */
function isOfNamespace({ namespaceSelector, ipBlock }: NetworkPolicyPeer, namespace: string | undefined): boolean {
  const other = namespaceSelector ?? ipBlock ?? undefined;
  return other === undefined || jsonEqual(other, { matchLabels: { [NAMESPACE_NAME_LABEL]: namespace } });
}

function ofHost(selector: WireLabelSelector | null | undefined, hostId: string): WireLabelSelector {
  return { ...selector, matchLabels: { ...selector?.matchLabels, [HOST_LABEL]: hostId } };
}
