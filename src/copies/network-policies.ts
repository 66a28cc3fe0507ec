import { jsonEqual } from "../api/json.ts";
import { COPY_ANNOTATION, HOST_LABEL } from "../api/keys.ts";
import type { NetworkPolicy, NetworkPolicyPeer, Stored, WireLabelSelector } from "../api/kubernetes.ts";
import { networkPolicies } from "../kube/resources.ts";
import type { CopiedKind, SourceIdentity } from "./kind.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;

const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";
const LONGEST_NAME = 253;
// A prefix of the host's uid that tells the hosts of a member apart.
const HOST_CHARACTERS = 8;

/** NetworkPolicies, for this host's delegates alone. */
export const NETWORK_POLICY: CopiedKind<NetworkPolicy> = {
  resource: networkPolicies,
  body: (source, { id }) => ({ spec: forDelegates(source, id) }),
  content: ({ spec }) => ({ "/spec": spec }),
  carried: withoutLabelsAndAnnotations,
  isCopied: (source) => !staysOnHost(source),
  copyName: policyCopyName,
  knownByLabels: isPolicyCopyName,
};

/** Reports whether no member gets the policy: its author says so, or it is another host's copy. */
export function staysOnHost({ metadata }: NetworkPolicy): boolean {
  return metadata?.annotations?.[COPY_ANNOTATION] === "false" || metadata?.labels?.[HOST_LABEL] !== undefined;
}

/**
 * Returns the name of the policy's copies. Nothing refers to a NetworkPolicy by name, so a name of its own keeps a copy apart
 * from the member's policy of that name, and from another host's.
 */
export function policyCopyName({ name, uid }: SourceIdentity, hostId: string): string {
  const suffix = suffixOf(hostId);
  return `${name.length + suffix.length <= LONGEST_NAME ? name : uid}${suffix}`;
}

export function isPolicyCopyName(name: string, hostId: string): boolean {
  return name.endsWith(suffixOf(hostId));
}

function suffixOf(hostId: string): string {
  return `.legation-${hostId.slice(0, HOST_CHARACTERS)}`;
}

/** Tools that read a policy's labels and annotations would take the copy for one of theirs, and remove it. */
function withoutLabelsAndAnnotations({ metadata, ...rest }: Stored<NetworkPolicy>): Stored<NetworkPolicy> {
  const { labels: _, annotations: __, ...others } = metadata;
  return { ...rest, metadata: others };
}

/**
 * Returns the spec for this host's delegates: the member's namespace may have other pods. As peers, pods of the policy's own
 * namespace are delegates, too; other namespaces are those of the member.
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

/** Reports whether the peer is pods of the policy's own namespace, which it may also select by name. */
function isOfNamespace({ namespaceSelector, ipBlock }: NetworkPolicyPeer, namespace: string | undefined): boolean {
  const other = namespaceSelector ?? ipBlock ?? undefined;
  return other === undefined || jsonEqual(other, { matchLabels: { [NAMESPACE_NAME_LABEL]: namespace } });
}

function ofHost(selector: WireLabelSelector | null | undefined, hostId: string): WireLabelSelector {
  return { ...selector, matchLabels: { ...selector?.matchLabels, [HOST_LABEL]: hostId } };
}
