import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { z } from "zod";
import { apiRequest } from "../clusters/api-request.ts";
import { staticBusybox } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster, ClusterOptions, Clusters } from "../clusters/types.ts";
import { startLegation } from "../legation/start.ts";
import { writeSuiteImages } from "./images.ts";
import { joinedApi } from "./joined-api.ts";
import type { SuitePrograms } from "./programs.ts";

/** The clusters that the suite runs on: an ordinary one, a host whose pods all run in a member, and one whose Jobs do. */
export type SideName = "plain" | "delegated" | "whole";

/** The sides that are compared with the ordinary cluster. */
export type ComparedSide = Exclude<SideName, "plain">;

/** The sides, in the order of the report. */
export const SIDES: readonly SideName[] = ["plain", "delegated", "whole"];

/** A cluster that is ready for the suite. */
export interface Side extends AsyncDisposable {
  readonly name: SideName;
  readonly kubeconfig: string;
  readonly kubectl: string;
}

interface SideOptions {
  readonly programs: SuitePrograms;
  /** A folder for files that go with the clusters. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

const DELEGATION = "legation.dev~1delegation";
const OF_THE_SUITE = 'has(object.metadata.labels) && "e2e-framework" in object.metadata.labels';
// A Job that has another manager goes on as its author wrote it.
const RUNS_HERE = "!has(object.spec.managedBy) && !has(object.metadata.ownerReferences)";
const WHOLE = 'Object{metadata: Object.metadata{annotations: {"legation.dev/whole": "true"}}}';

interface Policy {
  readonly name: string;
  readonly rule: { readonly apiGroups: string[]; readonly apiVersions: string[]; readonly resources: string[] };
  readonly condition: string;
  readonly mutation: object;
}

/** Labels the namespaces of the suite as they are made. */
function ofNamespaces(delegation: "all" | "annotated"): Policy {
  return {
    name: "delegate-the-suite",
    rule: { apiGroups: [""], apiVersions: ["v1"], resources: ["namespaces"] },
    condition: OF_THE_SUITE,
    mutation: {
      patchType: "JSONPatch",
      jsonPatch: {
        expression: `[JSONPatch{op: "add", path: "/metadata/labels/${DELEGATION}", value: "${delegation}"}]`,
      },
    },
  };
}

/** Annotates Jobs as they are made, as their authors would. */
const OF_JOBS: Policy = {
  name: "jobs-run-whole",
  rule: { apiGroups: ["batch"], apiVersions: ["v1"], resources: ["jobs"] },
  condition: RUNS_HERE,
  mutation: { patchType: "ApplyConfiguration", applyConfiguration: { expression: WHOLE } },
};

/** Starts the clusters of one side. */
export async function startSide(name: SideName, options: SideOptions): Promise<Side> {
  const busybox = staticBusybox();
  if (busybox === undefined) throw new Error("The suite's images need a static busybox.");
  const images = join(options.directory, "images.tar");
  writeSuiteImages(images, busybox, options.programs);
  const cluster: ClusterOptions = {
    realNode: true,
    // Host and member share node names: specs name a node of the host, and delegates need one of that name.
    realNodeName: "worker",
    images: [images],
    audit: false,
    // Calls pods of a Service directly: no kube-proxy runs that would lead to them.
    apiServerFlags: ["--enable-aggregator-routing"],
  };
  return name === "plain" ? startPlain(cluster, options) : startCompared(name, cluster, options);
}

async function startPlain(cluster: ClusterOptions, { onProgress }: SideOptions): Promise<Side> {
  const clusters = await startClusters({ names: ["plain"], clusters: { plain: cluster }, onProgress });
  return sideOf("plain", clusters, clusters.get("plain"), () => clusters.stop());
}

async function startCompared(
  name: ComparedSide,
  cluster: ClusterOptions,
  { directory, onProgress }: SideOptions,
): Promise<Side> {
  const clusters = await startClusters({
    names: ["host", "west"],
    clusters: { host: cluster, west: cluster },
    onProgress,
  });
  try {
    const host = clusters.get("host");
    const address = await serviceAddress(host);
    const legation = await startLegation({
      host,
      members: { west: clusters.get("west") },
      proxied: false,
      // Specs ask the kubelet on its usual port through the API server, which proxies to no loopback address.
      controllerFlags: [`--home-api-server=https://${address}`, `--kubelet-listen=${address}:10250`],
      restart: true,
      onProgress,
    });
    const wanted = JSON.stringify({
      // Specs select a pod's node by this label. The host runs no pods of its own that would spread over it.
      metadata: { labels: { "kubernetes.io/hostname": "legation-west" } },
      // The suite makes classes of its own, which the member needs too.
      spec: { classSelector: {} },
    });
    const patch = ["patch", "clusters.legation.dev", "west", "--type=merge", `--patch=${wanted}`];
    execFileSync(clusters.info.kubectl, [`--kubeconfig=${host.kubeconfig}`, ...patch]);
    const stop = (): Promise<void> => legation.stop().finally(() => clusters.stop());
    if (name === "delegated") {
      await createPolicy(host, ofNamespaces("all"));
      return sideOf(name, clusters, host, stop);
    }
    await createPolicy(host, ofNamespaces("annotated"));
    await createPolicy(host, OF_JOBS);
    const joined = await joinedApi(host, clusters.get("west"), directory);
    return sideOf(name, clusters, joined, async () => {
      joined.close();
      await stop();
    });
  } catch (error) {
    await clusters.stop();
    throw error;
  }
}

function sideOf(
  name: SideName,
  clusters: Clusters,
  { kubeconfig }: Pick<Cluster, "kubeconfig">,
  stop: () => Promise<void>,
): Side {
  return { name, kubeconfig, kubectl: clusters.info.kubectl, [Symbol.asyncDispose]: stop };
}

async function serviceAddress(cluster: Cluster): Promise<string> {
  const { text } = await apiRequest(cluster, "GET", "/api/v1/namespaces/default/services/kubernetes");
  const { spec } = z.object({ spec: z.object({ clusterIP: z.string() }) }).parse(JSON.parse(text));
  return spec.clusterIP;
}

async function createPolicy(cluster: Cluster, { name, rule, condition, mutation }: Policy): Promise<void> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  await create(cluster, "mutatingadmissionpolicies", {
    apiVersion,
    kind: "MutatingAdmissionPolicy",
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [{ ...rule, operations: ["CREATE"] }] },
      matchConditions: [{ name: "concerned", expression: condition }],
      reinvocationPolicy: "Never",
      failurePolicy: "Fail",
      mutations: [mutation],
    },
  });
  await create(cluster, "mutatingadmissionpolicybindings", {
    apiVersion,
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name },
  });
}

async function create(cluster: Cluster, plural: string, body: object): Promise<void> {
  const path = `/apis/admissionregistration.k8s.io/v1/${plural}`;
  const { status, text } = await apiRequest(cluster, "POST", path, { body });
  if (status !== 201) throw new Error(`${cluster.name}: ${plural}: ${text}`);
}
