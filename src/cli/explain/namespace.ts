import { MEMBER_NODE_ANNOTATION } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { namespaces, pods as podResource } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import { notOnHost, readable } from "../shared/reading.ts";
import type { Reason } from "./model.ts";
import { asksForMember, whyWithoutMember } from "./waiting.ts";
import { phaseOf } from "./workload.ts";

/** A delegated pod, or one in overflow mode that asks for a member. */
export interface NamespacePod {
  readonly name: string;
  /** The phase, or Terminating. */
  readonly phase: string;
  readonly containers: { readonly ready: number; readonly all: number };
  readonly cluster: string | undefined;
  /** The node in the member. */
  readonly memberNode: string | undefined;
  readonly created: string | undefined;
  /** Why it has no member. Undefined if it has one, or needs none. */
  readonly waits: Reason | undefined;
}

/** The pods of a namespace, as `legation status` shows them. */
export interface NamespaceStatus {
  readonly namespace: string;
  readonly pods: readonly NamespacePod[];
  /** Number of pods that are the host's own. */
  readonly onHost: number;
}

/**
 * Reads the pods of one namespace, for which rights in that namespace are enough. Rejects with `Failure` if the host has no such
 * namespace, else with KubeError.
 */
export async function readNamespace(
  client: ClusterClient,
  name: string,
  signal: AbortSignal,
): Promise<NamespaceStatus> {
  const [known, pods] = await Promise.all([
    readable(client.find(namespaces, { name }, { signal }).then((found) => found !== undefined)),
    listAll(client, podResource, { namespace: name, signal }),
  ]);
  if (known === false) throw notOnHost(`Namespace ${name}`);
  return namespaceStatus(name, pods);
}

/** Sums up where the pods of a namespace are. */
function namespaceStatus(namespace: string, pods: readonly Stored<Pod>[]): NamespaceStatus {
  const shown = pods.filter(asksForMember);
  return {
    namespace,
    pods: shown.map(namespacePod).sort((a, b) => (a.name < b.name ? -1 : 1)),
    onHost: pods.length - shown.length,
  };
}

function namespacePod(pod: Stored<Pod>): NamespacePod {
  const { metadata, spec, status } = pod;
  const { name, annotations = {}, creationTimestamp } = metadata;
  return {
    name,
    phase: phaseOf(pod),
    containers: {
      ready: (status?.containerStatuses ?? []).filter(({ ready }) => ready === true).length,
      all: spec?.containers?.length ?? 0,
    },
    cluster: memberOf(pod),
    memberNode: annotations[MEMBER_NODE_ANNOTATION],
    created: creationTimestamp,
    waits: whyWithoutMember(pod),
  };
}
