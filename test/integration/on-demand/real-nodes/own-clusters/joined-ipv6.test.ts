import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { pods, services } from "../../../../../src/kube/resources.ts";
import { startClusters } from "../../../../support/clusters/start.ts";
import type { Clusters } from "../../../../support/clusters/types.ts";
import { delegatedPod } from "../../../../support/delegated/pods.ts";
import { afterFile, cleanUpFile } from "../../../../support/harness/after-file.ts";
import { clientOf } from "../../../../support/harness/clients.ts";
import { kubectl } from "../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../../support/harness/wait.ts";
import { installMcsApi, serviceExportsIn } from "../../../../support/services/mcs-api.ts";
import { startWithMcs } from "../../../../support/services/mcs-clusters.ts";

// Kubernetes' own kube-proxy and CoreDNS on real nodes whose pods have addresses of both families.

const MEMBERS = ["west", "east"] as const;
const ALL = ["host", ...MEMBERS] as const;

const PATIENT = { timeoutMs: 120_000, intervalMs: 500 };
const RUNS = "trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www; sleep 3600 & wait";

let clusters: Clusters;
let client: ClusterClient;

beforeAll(async () => {
  const real = { realNode: true, serviceNetwork: "dual-stack" } as const;
  clusters = await startClusters({
    names: ALL,
    clusters: { host: { ...real, realNode: false, nodes: [] }, west: real, east: real },
  });
  afterFile(() => clusters.stop());
  await Promise.all(ALL.map((name) => installMcsApi(clusters.get(name))));
  await startWithMcs(clusters, MEMBERS);
  client = clientOf(clusters.get("host"));
  afterFile(() => client.close());
  return cleanUpFile;
}, 900_000);

test.each([
  ["of IPv6 alone", { ipFamilies: ["IPv6"] }, ["IPv6"]],
  ["of both families", { ipFamilyPolicy: "RequireDualStack" }, ["IPv4", "IPv6"]],
])(
  "a Service %s leads by its name and addresses, and by its import's, to the pods of all members",
  async (_, families, wanted) => {
    const labels = { "legation.dev/delegation": "annotated" };
    const everywhere = ALL.map((name) => clusters.get(name));
    const namespace = await freshNamespace(everywhere, { prefix: "ipv6", labels, onFinished: onTestFinished });
    const metadata = { name: "web", namespace };
    const ports = [{ name: "http", port: 80, targetPort: 8080 }];
    await client.create(services, {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: { app: "web" }, ports, ...families },
    });
    await client.create(serviceExportsIn("v1beta1"), {
      apiVersion: "multicluster.x-k8s.io/v1beta1",
      kind: "ServiceExport",
      metadata,
    });
    for (const name of MEMBERS) {
      const spec = {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "main",
            image: "localhost/busybox:1",
            command: ["sh", "-c", RUNS],
            readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          },
        ],
      };
      const annotations = { "legation.dev/clusters": name };
      await client.create(pods, delegatedPod(namespace, `web-${name}`, { labels: { app: "web" }, annotations, spec }));
      await podThat(client, namespace, `web-${name}`, inPhase("Running"), PATIENT);
    }
    const west = clusters.get("west");
    const member = clientOf(west);
    onTestFinished(() => member.close());
    for (const name of ["web", "clusterset-web"]) {
      const { spec } = await member.get(services, { namespace, name });
      expect(spec?.ipFamilies).toEqual(wanted);
      const byName = name === "web" ? "web" : `web.${namespace}.svc.clusterset.local`;
      for (const address of [byName, ...(spec?.clusterIPs ?? [])]) {
        const one = `{ printf 'GET / HTTP/1.0\\r\\n\\r\\n'; } | nc -w 2 ${address} 80 | tail -n 1`;
        const call = `for i in $(seq 24); do said=$(${one}); echo "\${said:-failed}"; done`;
        await eventuallyPasses(async () => {
          const said = await kubectl(west, ["exec", "-n", namespace, "web-west", "--", "sh", "-c", call]);
          expect([...new Set(said.trim().split("\n"))].sort(), address).toEqual(["web-east", "web-west"]);
        }, PATIENT);
      }
    }
  },
);
