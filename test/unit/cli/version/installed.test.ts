import { expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { readHostVersions } from "../../../../src/cli/version/installed.ts";
import { deployments, pods } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { cluster } from "../../../support/builders/member.ts";

const signal = new AbortController().signal;

/** Labels of an installed object of this component. */
function labels(component: string, version: string, manager = "legation"): Record<string, string> {
  return {
    "app.kubernetes.io/name": "legation",
    "app.kubernetes.io/component": component,
    "app.kubernetes.io/version": version,
    "app.kubernetes.io/managed-by": manager,
  };
}

function deployment(component: string, version: string, manager?: string): KubeObject & { metadata: { name: string } } {
  const spec = { replicas: 2, template: { spec: { containers: [{ name: "main", image: `legation:${version}` }] } } };
  const metadata = { namespace: "legation-system", name: component, labels: labels(component, version, manager) };
  return { metadata, ...{ spec } };
}

function runningPod(
  name: string,
  component: string,
  version: string,
  ready: boolean,
): KubeObject & { metadata: { name: string } } {
  const spec = { containers: [{ name: "main", image: `legation:${version}` }] };
  const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] };
  return { metadata: { namespace: "legation-system", name, labels: labels(component, version) }, ...{ spec, status } };
}

/** Reads the versions of a host, whose account may not list `forbidden`, and that does not serve `absent`. */
function versionsOf(host: MemoryCluster, { forbidden = "", absent = "" } = {}) {
  const { client } = host;
  const list: typeof client.list = async (resource, options) => {
    if (resource.plural === forbidden) throw kubeError("Forbidden", "no", { verb: "list", resource: forbidden });
    if (resource.plural === absent) throw kubeError("NotFound", "not served", { verb: "list", resource: absent });
    return client.list(resource, options);
  };
  const raw = async (): Promise<object> => ({ gitVersion: "v1.36.3" });
  return readHostVersions({ ...client, list, raw }, "https://host:6443", signal);
}

test("each Deployment has its version and those of its pods, and the installation that of all", async () => {
  const host = new MemoryCluster("host", "uid-of-host");
  host.put(deployments, deployment("controller", "0.2.0", "Helm"));
  host.put(deployments, deployment("webhook", "0.2.0", "Helm"));
  host.put(pods, runningPod("controller-a", "controller", "0.2.0", true));
  host.put(pods, runningPod("controller-b", "controller", "0.1.0", false));
  host.put(
    clusters,
    cluster("west", {
      status: {
        version: "v1.35.1",
        connection: "Agent",
        agent: { version: "0.2.0", connectedSince: "2026-01-01T00:00:00Z" },
      },
    }),
  );
  const { kubernetes, legation } = await versionsOf(host);
  expect(kubernetes).toBe("v1.36.3");
  expect(legation).toMatchObject({
    installer: "Helm",
    version: "0.2.0",
    members: [{ name: "west", kubernetes: "v1.35.1", connection: "Agent", agent: "0.2.0" }],
    processes: [
      {
        component: "controller",
        replicas: 2,
        image: "legation:0.2.0",
        pods: [
          { name: "controller-a", version: "0.2.0", ready: true },
          { name: "controller-b", version: "0.1.0", ready: false },
        ],
      },
      { component: "webhook", pods: [] },
    ],
  });
  host.put(deployments, deployment("access", "0.1.0"));
  expect((await versionsOf(host)).legation?.version).toBeUndefined();
});

test("what the account may not read is left out, and the rest is there", async () => {
  const host = new MemoryCluster("host", "uid-of-host");
  host.put(deployments, deployment("controller", "0.2.0"));
  host.put(clusters, cluster("west"));
  expect((await versionsOf(host, { forbidden: "deployments" })).legation).toMatchObject({
    processes: undefined,
    version: undefined,
    members: [{ name: "west" }],
  });
  expect((await versionsOf(host, { forbidden: "clusters" })).legation).toMatchObject({
    members: undefined,
    version: "0.2.0",
  });
});

test("a host that serves no Clusters has no installation", async () => {
  const host = new MemoryCluster("host", "uid-of-host");
  expect(await versionsOf(host, { absent: "clusters" })).toEqual({
    server: "https://host:6443",
    kubernetes: "v1.36.3",
  });
});
