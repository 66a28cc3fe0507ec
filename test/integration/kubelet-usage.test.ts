import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HOST_LABEL } from "../../src/api/keys.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

// Custom resources stand for a member's metrics API: readers see no difference, and the test writes the measurements.
function definition(plural: string, kind: string, scope: string): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.metrics.k8s.io`,
      annotations: { "api-approved.kubernetes.io": "unapproved, of a test" },
    },
    spec: {
      group: "metrics.k8s.io",
      scope,
      names: { plural, kind, listKind: `${kind}List` },
      versions: [
        {
          name: "v1beta1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}

const DEFINITIONS = [definition("pods", "PodMetrics", "Namespaced"), definition("nodes", "NodeMetrics", "Cluster")];
const NAMES = ["crd/pods.metrics.k8s.io", "crd/nodes.metrics.k8s.io"];

interface Measured {
  readonly at: number;
  readonly cpu: string;
  readonly memory: string;
}

function timeOf(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}

describe("the usage of a virtual node and its proxies", () => {
  useLegation();
  const clients = useClients();
  let namespace: string;
  let token: string;
  // Metrics have whole seconds. Later than any start of a container here.
  const now = Math.floor(Date.now() / 1000) * 1000 + 600_000;

  beforeAll(async () => {
    namespace = await freshNamespace(hostCluster(), {
      prefix: "usage",
      labels: { "legation.dev/delegation": "annotated" },
      onFinished: afterFile,
    });
    const web = delegatedPod(namespace, "web", { annotations: { "legation.dev/clusters": "west" } });
    await clients().host.create(pods, web);
    await eventually(
      async () => {
        const { status } = await clients().host.get(pods, { namespace, name: "web" });
        if (status?.phase !== "Running") throw new Error(JSON.stringify(status));
        return true;
      },
      { timeoutMs: 120_000, what: "a pod that runs" },
    );
    const host = hostCluster();
    const rights = ["--verb=get", "--resource=nodes/metrics,nodes/stats"];
    await kubectl(host, ["create", "clusterrole", namespace, ...rights]);
    const subject = `--serviceaccount=${namespace}:default`;
    await kubectl(host, ["create", "clusterrolebinding", namespace, `--clusterrole=${namespace}`, subject]);
    token = (await kubectl(host, ["-n", namespace, "create", "token", "default"])).trim();
  });
  afterAll(async () => {
    await kubectl(hostCluster(), [
      "delete",
      "--ignore-not-found",
      `clusterrole/${namespace}`,
      `clusterrolebinding/${namespace}`,
    ]);
    await kubectl(memberCluster("west"), ["delete", "--ignore-not-found", ...NAMES]);
  });

  /** Requests a virtual node as a metrics server does. */
  async function ask(path: string): Promise<string> {
    const { status } = await clients().host.get(nodes, { name: "legation-west" });
    const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
    const headers = { authorization: `Bearer ${token}` };
    const options = { host: "127.0.0.1", port, path, headers, rejectUnauthorized: false, timeout: 10_000 };
    const asked = request(options).end();
    const [response]: IncomingMessage[] = await once(asked, "response");
    if (response === undefined) throw new Error(`${path}: no answer`);
    const answer = await text(response);
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${answer}`);
    return answer;
  }

  /** Returns the samples of a virtual node, by name and labels: value and time. */
  async function samples(): Promise<Record<string, number[]>> {
    const lines = (await ask("/metrics/resource")).split("\n").filter((line) => /^[a-z]/.test(line));
    return Object.fromEntries(
      lines.map((line) => {
        const [name = "", ...numbers] = line.split(" ");
        return [name, numbers.map(Number)];
      }),
    );
  }

  function podMetrics(name: string, { at, cpu, memory }: Measured): object {
    return {
      apiVersion: "metrics.k8s.io/v1beta1",
      kind: "PodMetrics",
      metadata: { namespace, name, labels: { [HOST_LABEL]: "any" } },
      timestamp: timeOf(at),
      window: "15s",
      containers: [{ name: "main", usage: { cpu, memory } }],
    };
  }

  function nodeMetrics(name: string, { at, cpu, memory }: Measured): object {
    const metadata = { name };
    return {
      apiVersion: "metrics.k8s.io/v1beta1",
      kind: "NodeMetrics",
      metadata,
      timestamp: timeOf(at),
      usage: { cpu, memory },
    };
  }

  async function measure(...items: object[]): Promise<void> {
    await applyAll(memberCluster("west"), items, ["--server-side", "--force-conflicts"]);
  }

  test("is reported beside the node's own metrics, as monitors of kubelets read them", async () => {
    const lines = (await ask("/metrics")).split("\n");
    expect(lines).toContain('kubelet_node_name{node="legation-west"} 1');
    const running = lines.find((line) => line.startsWith('kubelet_running_containers{container_state="running"}'));
    expect(Number(running?.split(" ").at(-1))).toBeGreaterThanOrEqual(1);
    const labels = '{method="GET",path="metrics",server_type="readwrite",long_running="false"}';
    expect(lines.filter((line) => line.startsWith(`kubelet_http_requests_total${labels} `))).toHaveLength(1);
    expect((await ask("/metrics/probes")).split("\n").filter((line) => !line.startsWith("#"))).toEqual([""]);
  });

  test("is left out, without an error, where the member has no metrics API", async () => {
    await eventuallyPasses(async () => expect(await samples()).toEqual({ resource_scrape_error: [0] }));
    expect(JSON.parse(await ask("/stats/summary"))).toEqual({
      node: { nodeName: "legation-west" },
      pods: [],
    });
  });

  describe("with a metrics API in the member", () => {
    const web = (family: string): string => `${family}{namespace="${namespace}",pod="web"}`;
    const main = (family: string): string => `${family}{container="main",namespace="${namespace}",pod="web"}`;

    beforeAll(async () => {
      await measure(...DEFINITIONS);
      await kubectl(memberCluster("west"), ["wait", "--for=condition=Established", ...NAMES]);
      await eventuallyPasses(() =>
        measure(
          podMetrics("web", { at: now, cpu: "250m", memory: "64Mi" }),
          podMetrics("of-the-member", { at: now, cpu: "1", memory: "1Gi" }),
          nodeMetrics("one", { at: now, cpu: "1500000000n", memory: "2Gi" }),
          nodeMetrics("two", { at: now, cpu: "500m", memory: "1Gi" }),
        ),
      );
    });

    test("has the values of each proxy, and their sum over the member's nodes", async () => {
      await eventuallyPasses(async () =>
        expect(await samples()).toEqual({
          [main("container_cpu_usage_seconds_total")]: [expect.any(Number), now],
          [main("container_memory_working_set_bytes")]: [64 * 2 ** 20, now],
          [main("container_start_time_seconds")]: [expect.any(Number)],
          [web("pod_cpu_usage_seconds_total")]: [expect.any(Number), now],
          [web("pod_memory_working_set_bytes")]: [64 * 2 ** 20, now],
          node_cpu_usage_seconds_total: [expect.any(Number), now],
          node_memory_working_set_bytes: [3 * 2 ** 30, now],
          resource_scrape_error: [0],
        }),
      );
    });

    test("has cAdvisor's form, with the image", async () => {
      const labels = `container="main",image="work:1",namespace="${namespace}",pod="web"`;
      await eventuallyPasses(async () => {
        const lines = (await ask("/metrics/cadvisor")).split("\n");
        expect(lines).toContain(`container_memory_working_set_bytes{${labels}} ${64 * 2 ** 20} ${now}`);
        expect(lines).toContain("container_scrape_error 0");
      });
    });

    test("accumulates from one measurement to the next", async () => {
      const family = main("container_cpu_usage_seconds_total");
      const [before = 0] = (await samples())[family] ?? [];
      const at = now + 60_000;
      await measure(
        podMetrics("web", { at, cpu: "500m", memory: "64Mi" }),
        nodeMetrics("one", { at, cpu: "2", memory: "2Gi" }),
      );
      await eventuallyPasses(async () => {
        expect((await samples())[family]).toEqual([expect.closeTo(before + 30, 6), at]);
      });
    });

    test("is in the summary under the host's uid", async () => {
      const { metadata } = await clients().host.get(pods, { namespace, name: "web" });
      const { pods: told, node } = JSON.parse(await ask("/stats/summary")) as {
        readonly node: object;
        readonly pods: readonly object[];
      };
      expect(node).toMatchObject({ cpu: { usageNanoCores: 2.5e9 }, memory: { workingSetBytes: 3 * 2 ** 30 } });
      expect(told).toEqual([
        expect.objectContaining({
          podRef: { namespace, name: "web", uid: metadata.uid },
          containers: [expect.objectContaining({ name: "main" })],
        }),
      ]);
      expect(told[0]).toMatchObject({ cpu: { usageNanoCores: 5e8 }, memory: { workingSetBytes: 64 * 2 ** 20 } });
    });

    test("leaves out measurements from before the container's start", async () => {
      await measure(podMetrics("web", { at: Date.UTC(2020, 0, 1), cpu: "9", memory: "9Gi" }));
      await eventuallyPasses(async () => {
        const told = await samples();
        expect(told).not.toHaveProperty([web("pod_cpu_usage_seconds_total")]);
        expect(told).toMatchObject({ resource_scrape_error: [0] });
      });
    });

    test("is an error, and no number, if the member's response is invalid", async () => {
      const { timestamp: _timestamp, ...broken } = {
        timestamp: "",
        ...nodeMetrics("two", { at: now, cpu: "1", memory: "1" }),
      };
      await kubectl(memberCluster("west"), ["replace", "-f", "-"], { input: JSON.stringify(broken) });
      await eventuallyPasses(async () => expect(await samples()).toEqual({ resource_scrape_error: [1] }));
    });
  });
});
