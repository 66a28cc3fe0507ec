import { beforeAll, describe, expect, test } from "vitest";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { hostNodeWrites } from "../support/harness/host-nodes.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

// Pods that other files left in members count in the ranking; Legation reads them when it starts.
beforeAll(() =>
  eventuallyPasses(
    async () => {
      const columns =
        "-o=custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,DELETED:.metadata.deletionTimestamp";
      const others = ["get", "pods", "-A", "-l", "!legation.dev/host", "--no-headers", columns];
      for (const name of ["west", "east"] as const) {
        const found = (await kubectl(memberCluster(name), others)).split("\n");
        // A pod whose Job is gone with its namespace may keep that Job's finalizer for ever.
        expect(found.filter((line) => line.endsWith("<none>"))).toEqual([]);
      }
    },
    { timeoutMs: 120_000, what: "members without pods of their own" },
  ),
);
useLegation();

interface Row {
  readonly name: string;
  readonly node: string;
  readonly phase: string;
  readonly image: string;
}

async function rows(cluster: ReturnType<typeof hostCluster>, namespace: string): Promise<Row[]> {
  const columns = "NAME:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase,IMAGE:.spec.containers[0].image";
  const text = await kubectl(cluster, ["-n", namespace, "get", "pods", "--no-headers", `-o=custom-columns=${columns}`]);
  return text
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [name = "", node = "", phase = "", image = ""] = line.split(/\s+/);
      return { name, node, phase, image };
    });
}

function deployment(replicas: number): string {
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: { "legation.dev/delegate": "true" } },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "web:1", resources: { requests: { cpu: "100m" } } }] },
      },
    },
  });
}

describe("an annotated Deployment", () => {
  test("rolls out, scales, updates and rolls back over both members, and never uses a node of the host", async () => {
    const host = hostCluster();
    const members = [memberCluster("west"), memberCluster("east")] as const;
    const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "annotated" } });
    const run = (...args: string[]): Promise<string> =>
      kubectl(host, ["-n", namespace, ...args], { timeoutMs: 120_000 });
    const settled = async (replicas: number, image: string): Promise<void> => {
      await run("rollout", "status", "deployment/web", "--timeout=90s");
      const all = await eventually(async () => {
        const proxies = await rows(host, namespace);
        return proxies.length === replicas && proxies;
      });
      expect(new Set(all.map(({ phase }) => phase))).toEqual(new Set(["Running"]));
      expect(new Set(all.map((row) => row.image))).toEqual(new Set([image]));
      expect(all.every(({ node }) => node === "legation-west" || node === "legation-east")).toBe(true);
      await eventually(async () => {
        const delegates = (await Promise.all(members.map((member) => rows(member, namespace)))).flat();
        expect(delegates.map(({ name }) => name).sort()).toEqual(all.map(({ name }) => name).sort());
        return true;
      });
    };

    // Pods of earlier files are still ending: until then, the fuller member is rightly the second choice.
    await eventually(
      async () => {
        const left = await Promise.all(
          members.map((member) => kubectl(member, ["get", "pods", "-A", "-l", "legation.dev/host", "-o", "name"])),
        );
        return left.every((names) => names.trim() === "");
      },
      { timeoutMs: 120_000, what: "members without delegates" },
    );
    await kubectl(host, ["-n", namespace, "apply", "-f", "-"], { input: deployment(20) });
    await settled(20, "web:1");
    const [west = [], east = []] = await Promise.all(members.map((member) => rows(member, namespace)));
    // Not exact: a member that answered slowly during the burst gets fewer.
    expect(Math.min(west.length, east.length)).toBeGreaterThanOrEqual(5);

    await run("scale", "deployment/web", "--replicas=50");
    await settled(50, "web:1");
    await run("scale", "deployment/web", "--replicas=5");
    await settled(5, "web:1");
    await run("set", "image", "deployment/web", "main=web:2");
    await settled(5, "web:2");
    await run("rollout", "undo", "deployment/web");
    await settled(5, "web:1");
    await run("delete", "deployment", "web");
    await eventually(async () => {
      const left = await Promise.all([host, ...members].map((cluster) => rows(cluster, namespace)));
      expect(left.flat()).toEqual([]);
      return true;
    });
    expect(await hostNodeWrites(host, new Set([namespace]))).toEqual([]);
  });
});
