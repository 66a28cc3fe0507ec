import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Authority } from "../clusters/pki.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "./kubectl.ts";
import { eventually } from "./wait.ts";

const VERSION = "metrics.k8s.io/v1beta1";
const API_SERVICE = "apiservice/v1beta1.metrics.k8s.io";
const SERVICE = "service/metrics-server";

// Lists as metrics-server writes them, without a version.
const ANSWERS: Readonly<Record<string, object>> = {
  [`/apis/${VERSION}`]: {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: VERSION,
    resources: [
      { name: "nodes", singularName: "", namespaced: false, kind: "NodeMetrics", verbs: ["get", "list"] },
      { name: "pods", singularName: "", namespaced: true, kind: "PodMetrics", verbs: ["get", "list"] },
    ],
  },
  [`/apis/${VERSION}/pods`]: { kind: "PodMetricsList", apiVersion: VERSION, metadata: {}, items: [] },
  [`/apis/${VERSION}/nodes`]: { kind: "NodeMetricsList", apiVersion: VERSION, metadata: {}, items: [] },
};

/** An aggregated metrics API without measurements yet. */
export interface MetricsApi {
  stop(): Promise<void>;
}

/** Registers a metrics API that this process serves. Where nothing can be measured, no metrics-server would answer. */
export async function serveMetricsApi(cluster: Cluster): Promise<MetricsApi> {
  const authority = await Authority.create("metrics");
  const issued = await authority.issue({ commonName: "localhost", usage: "serverAuth", dnsNames: ["localhost"] });
  const server = createServer({ key: issued.key, cert: issued.certificate }, ({ url = "" }, response) => {
    const path = url.split("?", 1)[0] ?? "";
    const answer = ANSWERS[path] ?? ANSWERS[path.replace(/\/namespaces\/[^/]+\//, "/")];
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const objects = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "metrics-server", namespace: "kube-system" },
      spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1beta1.metrics.k8s.io" },
      spec: {
        group: "metrics.k8s.io",
        version: "v1beta1",
        service: { name: "metrics-server", namespace: "kube-system", port },
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ];
  await applyAll(cluster, objects);
  await kubectl(cluster, ["wait", API_SERVICE, "--for=condition=Available", "--timeout=60s"]);
  await eventually(async () =>
    (await kubectl(cluster, ["get", "--raw", `/apis/${VERSION}/pods`])).includes("PodMetricsList"),
  );
  return {
    stop: async () => {
      await kubectl(cluster, ["delete", API_SERVICE]);
      await kubectl(cluster, ["delete", "-n", "kube-system", SERVICE]);
      server.closeAllConnections();
      server.close();
    },
  };
}
