import { expect, test } from "vitest";
import type { KubeEvent, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { events, pods } from "../../../src/kube/resources.ts";
import { legationWrites } from "../../support/delegated/writes.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podGone, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";

const IMAGE = "localhost/busybox:1";

function podWith(name: string, spec: Partial<PodSpec>): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      containers: [{ name: "main", image: IMAGE, command: ["sleep", "600"] }],
      // Without a cluster's DNS, kubelets warn of the default.
      dnsPolicy: "Default",
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      ...spec,
    },
  };
}

async function eventsOf({ client, namespace }: Place, name: string): Promise<Stored<KubeEvent>[]> {
  const { items } = await client.list(events, { namespace, fieldSelector: `involvedObject.name=${name}` });
  return items;
}

/** Returns the readable part of an event, without the values that differ between runs. */
function readable({ namespace }: Place): (event: KubeEvent) => string {
  return ({ type, reason, source, involvedObject, message = "" }) => {
    const text = message
      .replaceAll(namespace, "<namespace>")
      .replaceAll(/\b(west|plain)-real\b/g, "<node>")
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uid>")
      .replaceAll(/10\.\d+\.\d+\.\d+/g, "<ip>")
      .replaceAll(/container(d:\/\/)?[0-9a-f]{64}/g, "<container>");
    return [type, reason, source?.component, involvedObject.fieldPath ?? "-", text].join(" ");
  };
}

interface Row {
  readonly name: string;
  readonly spec: Partial<PodSpec>;
  /** Reasons that the test awaits on the plain cluster. */
  readonly reasons: readonly string[];
  readonly deleted?: boolean;
}

const rows: readonly Row[] = [
  {
    name: "runs, and is deleted",
    spec: {},
    reasons: ["Scheduled", "Pulled", "Created", "Started", "Killing"],
    deleted: true,
  },
  {
    name: "crashes again and again",
    spec: { containers: [{ name: "main", image: IMAGE, command: ["false"] }] },
    reasons: ["Scheduled", "Pulled", "Created", "Started", "BackOff"],
  },
  {
    name: "cannot be pulled",
    spec: { containers: [{ name: "main", image: "localhost/missing:1" }] },
    reasons: ["Scheduled", "Pulling", "Failed", "BackOff"],
  },
  {
    name: "fails its probes",
    spec: {
      containers: [
        {
          name: "main",
          image: IMAGE,
          command: ["sleep", "600"],
          readinessProbe: {
            exec: { command: ["sh", "-c", "echo not yet; exit 1"] },
            periodSeconds: 1,
            timeoutSeconds: 30,
          },
        },
      ],
    },
    reasons: ["Scheduled", "Pulled", "Created", "Started", "Unhealthy"],
  },
  {
    name: "has a volume that cannot be mounted",
    spec: {
      volumes: [{ name: "missing", hostPath: { path: "/nowhere/at/all", type: "Directory" } }],
      containers: [
        { name: "main", image: IMAGE, volumeMounts: [{ name: "missing", mountPath: "/missing" }], command: ["true"] },
      ],
    },
    reasons: ["Scheduled", "FailedMount"],
  },
];

onRealNodes((realNodes) => {
  test.each(rows)("has the same events on the host as on a plain cluster for a pod that $name", async (row) => {
    const { plain, delegating } = await realNodes().places();
    const told = async (place: Place): Promise<string[]> => (await eventsOf(place, "web")).map(readable(place));
    await Promise.all(
      [plain, delegating].map(async (place) => {
        const { client, namespace } = place;
        const pod = podWith("web", row.spec);
        await client.create(pods, { ...pod, metadata: { ...pod.metadata, namespace } });
        if (row.deleted === true) {
          await podThat(client, namespace, "web", inPhase("Running"));
          await client.delete(pods, { namespace, name: "web" });
          await podGone(client, namespace, "web");
        }
        const all = async (): Promise<boolean> => {
          const reasons = new Set((await eventsOf(place, "web")).map(({ reason }) => reason));
          return row.reasons.every((reason) => reasons.has(reason));
        };
        await eventually(all, { timeoutMs: 120_000, what: `${row.reasons.join(", ")} on ${place.cluster.name}` });
      }),
    );
    // Later events depend on when each cluster is read.
    const wanted = (lines: readonly string[]): string[] =>
      [...new Set(lines.filter((line) => row.reasons.some((reason) => line.split(" ")[1] === reason)))].sort();
    await eventuallyPasses(async () => expect(wanted(await told(delegating))).toEqual(wanted(await told(plain))));
  });

  test("attaches events to the proxy, for kubectl describe and field selectors, and names their origin", async () => {
    const { delegating } = await realNodes().places();
    const { client, cluster, namespace } = delegating;
    const pod = podWith("web", {});
    const proxy = await client.create(pods, { ...pod, metadata: { ...pod.metadata, namespace } });
    await podThat(client, namespace, "web", inPhase("Running"));
    await eventuallyPasses(async () => {
      const described = await kubectl(cluster, ["describe", "pod", "web", "-n", namespace]);
      for (const reason of ["Scheduled", "Pulled", "Created", "Started"]) {
        expect(described).toMatch(new RegExp(`^ +Normal +${reason} .*(kubelet|default-scheduler)`, "m"));
      }
    });
    for (const { metadata, involvedObject, count, series, source } of await eventsOf(delegating, "web")) {
      expect(involvedObject.uid).toBe(proxy.metadata.uid);
      expect(metadata.annotations?.["legation.dev/cluster"]).toBe("west");
      expect(count ?? series?.count ?? 1).toBe(1);
      if (source?.component === "kubelet") expect(source.host).toBe("west-real");
    }
    // API servers list by name; the member's list has its own order.
    const listed = async (place: Place): Promise<unknown> => (await eventsOf(place, "web")).map(({ reason }) => reason);
    expect(await listed(delegating)).toEqual(await listed(realNodes().inMember(delegating)));
  });

  test("counts a repeated event in one object, also after a controller restart", async () => {
    const { delegating } = await realNodes().places();
    const { client, namespace } = delegating;
    const pod = podWith("web", { containers: [{ name: "main", image: IMAGE, command: ["false"] }] });
    await client.create(pods, { ...pod, metadata: { ...pod.metadata, namespace } });
    const inMember = realNodes().inMember(delegating);
    const uids = new Map<string, string>();
    const agree = async (least: number): Promise<void> =>
      eventuallyPasses(
        async () => {
          const form = ({ reason, count, firstTimestamp, lastTimestamp, type }: KubeEvent): string =>
            [reason, type, count, firstTimestamp, lastTimestamp].join(" ");
          const shown = await eventsOf(delegating, "web");
          const told = (await eventsOf(inMember, "web")).filter(({ reason }) => reason !== "FailedScheduling");
          expect(shown.map(form).sort()).toEqual(told.map(form).sort());
          const backOffs = shown.filter(({ reason }) => reason === "BackOff");
          expect(backOffs).toHaveLength(1);
          expect(backOffs[0]?.count).toBeGreaterThanOrEqual(least);
          for (const { metadata } of shown) {
            expect(uids.get(metadata.name) ?? metadata.uid).toBe(metadata.uid);
            uids.set(metadata.name, metadata.uid);
          }
        },
        { timeoutMs: 120_000, intervalMs: 500 },
      );
    await agree(2);
    const { controller } = realNodes().legation;
    await controller.stop("SIGKILL");
    // The pod goes on, and events in the meantime follow afterwards.
    const before = (await eventsOf(inMember, "web")).reduce((sum, { count = 1 }) => sum + count, 0);
    await eventually(
      async () => (await eventsOf(inMember, "web")).reduce((sum, { count = 1 }) => sum + count, 0) > before,
      { timeoutMs: 60_000, what: "another crash" },
    );
    await controller.start();
    await agree(3);
  });

  test("writes each event of an ordinary pod once on the host, and adds no other write", async () => {
    const { delegating } = await realNodes().places();
    const { client, cluster, namespace } = delegating;
    const pod = podWith("web", {});
    await client.create(pods, { ...pod, metadata: { ...pod.metadata, namespace } });
    await podThat(client, namespace, "web", inPhase("Running"));
    await eventuallyPasses(async () => {
      const { events: told, others } = await legationWrites(cluster, namespace);
      expect(told).toEqual(Array.from({ length: 4 }, () => "create events"));
      expect(others).toEqual([]);
    });
  });
});
