import type { Cluster } from "../../../api/cluster.ts";
import { joinCommandOf } from "../../../api/join-command.ts";
import type { KubeEvent, Stored } from "../../../api/kubernetes.ts";
import { counted } from "../../../api/wording.ts";
import { certificatesOf } from "../../../certificates/bundle.ts";
import { publishedServer } from "../../../controllers/home-api/address.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { events } from "../../../kube/resources.ts";
import { some } from "../../shared/output.ts";
import { readable } from "../../shared/reading.ts";
import { type Finding, fail, info, ok, skip, warn } from "./finding.ts";

/** Reads where pods of members find the host's API server, as far as the host tells it. Rejects with KubeError. */
export async function homeApiFindings(
  host: ClusterClient,
  clusters: readonly Stored<Cluster>[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (clusters.length === 0) return [];
  const published = await publishedServer(host, signal);
  const ways = clusters.map((cluster) => homeApiWay(cluster, published));
  const found = await readable(readEvents(host, signal));
  const ofEvents =
    found === undefined ? [skip("pods that lack the host's API: you may not list events")] : refusedPods(found);
  return [...ways, ...ofEvents];
}

/** Judges the way to the host's API server that a Cluster names. `published`: the address of kube-public/cluster-info. */
export function homeApiWay(cluster: Stored<Cluster>, published: string | undefined): Finding {
  const { spec, status } = cluster;
  const { name } = cluster.metadata;
  const { homeAPI, agent } = spec;
  if (homeAPI !== undefined) {
    const data = homeAPI.certificateAuthorityData;
    if (data !== undefined && certificatesOf(Buffer.from(data, "base64").toString("utf8")).length === 0) {
      const what = `${name}: spec.homeAPI.certificateAuthorityData is not the base64 of a PEM certificate`;
      return fail(what, `kubectl edit clusters.legation.dev ${name}`);
    }
    return ok(`pods in ${name} find the host at ${homeAPI.server}, as its Cluster says`);
  }
  if (agent?.homeAPI === true) {
    return status?.connection === "Agent"
      ? ok(`pods in ${name} find the host through its agent`)
      : warn(
          `pods in ${name} find the host through its agent, which has not connected`,
          `legation join ${name} --agent --home-api-through-agent`,
        );
  }
  if (published !== undefined)
    return ok(`pods in ${name} find the host at ${published}, or where the controller's --home-api-server says`);
  return skip(
    `pods in ${name}: where they find the host is known to the controller alone (--home-api-server)`,
    `${joinCommandOf(cluster)} --home-api-server URL`,
  );
}

const NO_HOME_API = "NoHomeAPI";
const NO_TOKEN = "NoToken";

async function readEvents(host: ClusterClient, signal: AbortSignal): Promise<readonly Stored<KubeEvent>[]> {
  const lists = [NO_HOME_API, NO_TOKEN].map((reason) =>
    host.list(events, { fieldSelector: `reason=${reason}`, limit: 100, signal }),
  );
  return (await Promise.all(lists)).flatMap(({ items }) => items);
}

/** Judges pods that do not get what they need to reach the host's API server, by their events. */
export function refusedPods(found: readonly Pick<KubeEvent, "reason" | "message" | "involvedObject">[]): Finding[] {
  return [...Map.groupBy(found, ({ reason }) => reason)].map(([reason, those]) => {
    const message = those[0]?.message;
    if (reason === NO_TOKEN) {
      const pods = new Set(those.map(({ involvedObject: of }) => `${of?.namespace}/${of?.name}`));
      const what = `${counted(pods.size)} could lately not reach the host's API server (${some([...pods])}): ${message}`;
      return warn(what, "see docs/troubleshooting.md#a-pod-does-not-reach-its-api-server");
    }
    // Only programs that call the Kubernetes API lack anything: most pods mount a token that nothing reads.
    const namespaces = new Set(those.map(({ involvedObject }) => involvedObject?.namespace ?? ""));
    return info(
      `pods of ${some([...namespaces].sort())} lately started without access to a Kubernetes API, which only programs that ` +
        `call it need (Argo, Spark, operators): ${message}`,
      "none is needed where no program calls it; else see docs/home-api.md#telling-members-where-the-host-is",
    );
  });
}
