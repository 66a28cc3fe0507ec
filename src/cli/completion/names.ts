import type { KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, type Resource, services } from "../../kube/resources.ts";
import type { OutputFormat } from "../shared/output.ts";
import type { Session } from "../shared/session.ts";
import { SUBJECT_NAMES, subjectOf } from "../simulation/subjects.ts";
import { WORKLOAD_RESOURCES } from "../simulation/workloads.ts";
import type { WrittenLine } from "./written-line.ts";

/** A kind of names. `ofKind`: objects of the kind that the argument before names. */
export type ValueKind = "member" | "namespace" | "kind" | "ofKind" | "format";

const FORMATS: readonly OutputFormat[] = ["wide", "json", "yaml"];

// The user goes on writing meanwhile.
const TIMEOUT_MS = 3_000;
const MOST = 500;

/** Reads the names of a kind, with the kubeconfig and context of the line. Rejects with KubeError. */
export async function readNames(kind: ValueKind, { flags, plain }: WrittenLine, session: Session): Promise<string[]> {
  const choice = { kubeconfig: flags.get("--kubeconfig"), context: flags.get("--context") };
  if (kind === "kind") return [...SUBJECT_NAMES];
  if (kind === "format") return [...FORMATS, ...(plain[0] === "get" ? ["name"] : [])];
  const { client, namespace } = await session.connect(choice, "host");
  if (kind === "member") return await list(client, clusters, session.signal);
  if (kind === "namespace") return await list(client, namespaces, session.signal);
  const subject = subjectOf(plain[1] ?? "");
  if (subject === undefined) return [];
  return await list(
    client,
    subject === "Service" ? services : WORKLOAD_RESOURCES[subject],
    session.signal,
    flags.get("--namespace") ?? namespace,
  );
}

async function list(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
  namespace?: string,
): Promise<string[]> {
  const { items } = await client.list(resource, {
    limit: MOST,
    timeoutMs: TIMEOUT_MS,
    dropManagedFields: true,
    signal,
    ...(namespace === undefined ? {} : { namespace }),
  });
  return items.map(({ metadata }) => metadata.name);
}
