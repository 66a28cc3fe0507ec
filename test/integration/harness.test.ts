import { Agent } from "node:https";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { apiRequest } from "../support/clusters/api-request.ts";
import { auditEvents } from "../support/clusters/audit.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const IMAGE = "registry.example/never-pulled:1";

const podList = z.object({
  items: z.array(
    z.object({
      status: z.object({
        phase: z.string(),
        containerStatuses: z
          .array(z.object({ state: z.object({ terminated: z.object({ exitCode: z.number() }).optional() }) }))
          .optional(),
      }),
    }),
  ),
});

function jobManifest(name: string, annotations: Readonly<Record<string, string>> = {}): string {
  const spec = { restartPolicy: "Never", containers: [{ name: "main", image: IMAGE }] };
  return JSON.stringify({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: { backoffLimit: 0, template: { metadata: { annotations }, spec } },
  });
}

function podManifest(name: string, annotations: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, annotations },
    spec: { containers: [{ name: "main", image: IMAGE }] },
  });
}

async function readyz(cluster: Cluster, server = cluster.server, timeoutMs = 10_000): Promise<number> {
  return (await apiRequest({ ...cluster, server }, "GET", "/readyz", { timeoutMs })).status;
}

// For responses that must not come.
const NO_ANSWER_MS = 1_000;

describe("the clusters of an integration run", () => {
  test.each([
    { name: "host", cluster: hostCluster, nodes: 2 },
    { name: "west", cluster: () => memberCluster("west"), nodes: 3 },
    { name: "east", cluster: () => memberCluster("east"), nodes: 3 },
  ])("have $nodes ready nodes of the pinned version: $name", async ({ name, cluster, nodes }) => {
    const version: unknown = JSON.parse(await kubectl(cluster(), ["version", "-o", "json"]));
    expect(version).toMatchObject({ serverVersion: { minor: "36" }, clientVersion: { minor: "36" } });
    const list = await kubectl(cluster(), ["get", "nodes", "--no-headers", "--selector=!legation.dev/cluster"]);
    const rows = list
      .trim()
      .split("\n")
      .map((row) => row.split(/\s+/).slice(0, 2));
    expect(rows).toEqual(Array.from({ length: nodes }, (_, i) => [`${name}-node-${i + 1}`, "Ready"]));
  });

  test("run a pod in a member, and one on the host's nodes", async () => {
    for (const cluster of [memberCluster("west"), hostCluster()]) {
      const namespace = await freshNamespace(cluster);
      await kubectl(cluster, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("one") });
      await kubectl(cluster, ["wait", "-n", namespace, "pod/one", "--for=condition=Ready", "--timeout=50s"]);
    }
  });

  test.each([
    { outcome: "pending", phase: "Pending", exitCode: undefined },
    { outcome: "running", phase: "Running", exitCode: undefined },
    { outcome: "succeeded", phase: "Succeeded", exitCode: 0 },
    { outcome: "failed", phase: "Failed", exitCode: 42 },
  ])("show a Job's fake pod with outcome $outcome as $phase when another Job has ended", async (expected) => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    const annotations = { [KWOK_ANNOTATIONS.outcome]: expected.outcome, [KWOK_ANNOTATIONS.exitCode]: "42" };
    const jobs = [jobManifest("subject", annotations), jobManifest("other")].join("\n");
    await kubectl(west, ["apply", "-n", namespace, "-f", "-"], { input: jobs });
    await kubectl(west, ["wait", "-n", namespace, "job/other", "--for=condition=Complete", "--timeout=50s"]);
    await eventuallyPasses(async () => {
      const selected = ["get", "pods", "-n", namespace, "-l", "job-name=subject", "-o", "json"];
      const [pod] = podList.parse(JSON.parse(await kubectl(west, selected))).items;
      expect(pod?.status.phase).toBe(expected.phase);
      expect(pod?.status.containerStatuses?.[0]?.state.terminated?.exitCode).toBe(expected.exitCode);
    });
  });

  test("start and stop a fake pod after the durations that it asks for", async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    const annotations = { [KWOK_ANNOTATIONS.startsAfter]: "1s", [KWOK_ANNOTATIONS.stopsAfter]: "2s" };
    const begin = performance.now();
    await kubectl(west, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("slow", annotations) });
    await kubectl(west, ["wait", "-n", namespace, "pod/slow", "--for=condition=Ready", "--timeout=50s"]);
    const running = performance.now();
    expect(running - begin).toBeGreaterThan(1000);
    await kubectl(west, ["delete", "-n", namespace, "pod/slow"]);
    expect(performance.now() - running).toBeGreaterThan(2000);
  });

  test("publish an authority that an aggregated server would trust", async () => {
    const host = hostCluster();
    const args = ["get", "-n", "kube-system", "configmap/extension-apiserver-authentication", "-o", "json"];
    const published: unknown = JSON.parse(await kubectl(host, args));
    expect(published).toMatchObject({ data: { "client-ca-file": host.caData } });
  });

  test("reject with kubectl's own message", async () => {
    await expect(kubectl(hostCluster(), ["get", "pod", "nobody"])).rejects.toThrow('pods "nobody" not found');
  });
});

describe("an API server", () => {
  test("accepts connections and does not answer while it is frozen", async () => {
    const east = memberCluster("east");
    onTestFinished(() => east.mend());
    await east.apiServer.freeze();
    await expect(readyz(east, east.server, NO_ANSWER_MS)).rejects.toThrow("no answer within");
    await east.apiServer.thaw();
    await expect(eventually(() => readyz(east))).resolves.toBe(200);
  });

  test("refuses connections while it is stopped, and has its data and port when it returns", async () => {
    const east = memberCluster("east");
    const namespace = await freshNamespace(east);
    onTestFinished(() => east.mend());
    await east.apiServer.stop();
    await expect(readyz(east)).rejects.toThrow("ECONNREFUSED");
    await east.apiServer.start();
    expect(await readyz(east)).toBe(200);
    expect(await kubectl(east, ["get", "namespace", namespace, "-o", "name"])).toBe(`namespace/${namespace}\n`);
  });

  test("runs again after mending, like everything else that was stopped, frozen or cut", async () => {
    const east = memberCluster("east");
    onTestFinished(() => east.mend());
    await Promise.all([
      east.proxy.cut(),
      east.kwok.stop("SIGKILL"),
      east.scheduler.freeze(),
      east.apiServer.stop("SIGKILL"),
    ]);
    await east.mend();
    expect(await readyz(east, east.proxiedServer)).toBe(200);
    const namespace = await freshNamespace(east);
    await kubectl(east, ["apply", "-n", namespace, "-f", "-"], { input: podManifest("after") });
    await kubectl(east, ["wait", "-n", namespace, "pod/after", "--for=condition=Ready", "--timeout=50s"]);
  });

  test("logs each write with its user", async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    await kubectl(west, ["create", "configmap", "-n", namespace, "noted"]);
    const events = await auditEvents(west, (event) => event.objectRef?.name === "noted");
    expect(events).toMatchObject([
      { verb: "create", user: { username: "admin" }, objectRef: { resource: "configmaps", namespace } },
    ]);
  });
});

describe("the fault proxy", () => {
  test("forwards by default", async () => {
    const west = memberCluster("west");
    expect(await readyz(west, west.proxiedServer)).toBe(200);
    expect(await kubectl(west, ["get", "--raw", "/readyz"], { kubeconfig: west.proxiedKubeconfig })).toBe("ok");
  });

  test.each([
    { fault: "cut", error: "ECONNREFUSED", apply: (west: Cluster) => west.proxy.cut() },
    { fault: "blackhole", error: "no answer within", apply: (west: Cluster) => west.proxy.blackhole() },
    { fault: "deaf to requests", error: "no answer within", apply: (west: Cluster) => west.proxy.deaf("requests") },
    { fault: "deaf to answers", error: "no answer within", apply: (west: Cluster) => west.proxy.deaf("answers") },
  ])("fails requests with $error after $fault, and no others, until it is healed", async ({ error, apply }) => {
    const west = memberCluster("west");
    onTestFinished(() => west.mend());
    await apply(west);
    await expect(readyz(west, west.proxiedServer, NO_ANSWER_MS)).rejects.toThrow(error);
    expect(await readyz(west)).toBe(200);
    await west.proxy.heal();
    expect(await readyz(west, west.proxiedServer)).toBe(200);
  });

  test("slows each direction", async () => {
    const west = memberCluster("west");
    onTestFinished(() => west.mend());
    await west.proxy.slow(100);
    const begin = performance.now();
    expect(await readyz(west, west.proxiedServer)).toBe(200);
    // TLS 1.3 and one request: at least two round trips.
    expect(performance.now() - begin).toBeGreaterThan(400);
  });

  test("lets a request on an open connection take effect and drops the response when it is deaf to answers", async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(async () => {
      agent.destroy();
      await west.proxy.heal();
    });
    const proxied = { ...west, server: west.proxiedServer };
    await apiRequest(proxied, "GET", "/version", { agent });
    await west.proxy.deaf();
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "made" } };
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await expect(apiRequest(proxied, "POST", path, { agent, body, timeoutMs: 1000 })).rejects.toThrow(
      "no answer within",
    );
    await eventuallyPasses(async () =>
      expect(await apiRequest(west, "GET", `${path}/made`)).toMatchObject({ status: 200 }),
    );
  });
});
