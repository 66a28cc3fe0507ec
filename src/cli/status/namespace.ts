import { MEMBER_NODE_ANNOTATION } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { namespaces, pods as podResource } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import { age, counted, type Outcome, table } from "../shared/output.ts";
import { notOnHost, readable } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import type { Terminal } from "../shared/terminal.ts";
import { asksForMember, phaseOf, type Reason, whyWithoutMember } from "./workload.ts";

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
  { signal, terminal }: Pick<Session, "signal" | "terminal">,
): Promise<Outcome> {
  const [known, pods] = await Promise.all([
    readable(client.find(namespaces, { name }, { signal }).then((found) => found !== undefined)),
    listAll(client, podResource, { namespace: name, signal }),
  ]);
  if (known === false) throw notOnHost(`Namespace ${name}`);
  const status = namespaceStatus(name, pods);
  return { document: status, text: namespaceText(status, Date.now(), terminal) };
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

/** Formats the pods of a namespace for people. */
function namespaceText({ namespace, pods, onHost }: NamespaceStatus, now: number, terminal: Terminal): string {
  const waiting = pods.filter((pod) => pod.waits !== undefined).length;
  const without = waiting === 0 ? "" : `, ${waiting} of them without a member`;
  const summary = `Namespace ${namespace}: ${counted(pods.length, "delegated pod")}${without}`;
  const note =
    onHost === 0
      ? []
      : [`${counted(onHost)} ${onHost === 1 ? "is" : "are"} not delegated (see \`legation status pod NAME\`)`];
  if (pods.length === 0) return [summary, ...note].join("\n");
  const isAnyWaiting = waiting > 0;
  const rows = pods.map((pod) => [
    pod.name,
    `${pod.containers.ready}/${pod.containers.all}`,
    pod.phase,
    pod.cluster ?? "-",
    pod.memberNode ?? "-",
    pod.created === undefined ? "-" : age(now - Date.parse(pod.created)),
    ...(isAnyWaiting ? [pod.waits === undefined ? "" : `${pod.waits.reason}: ${pod.waits.message}`] : []),
  ]);
  const header = ["POD", "READY", "STATUS", "CLUSTER", "NODE", "AGE", ...(isAnyWaiting ? ["WHY"] : [])];
  return [summary, table(header, rows, terminal.width), ...note].join("\n");
}
