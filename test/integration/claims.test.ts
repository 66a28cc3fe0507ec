import { describe, expect, onTestFinished, test } from "vitest";
import type { KubeObject, PersistentVolumeClaim, Pod, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { namespaces, persistentVolumeClaims, pods, type Resource } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { makeVolume } from "../support/harness/volumes.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Write } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();
const PATIENT = { timeoutMs: 60_000 };
const CLASS = "by-hand";

type Finished = (cleanUp: () => Promise<void>) => void;

interface Quota extends KubeObject {
  spec?: object;
}
const quotas: Resource<Quota> = {
  group: "",
  version: "v1",
  plural: "resourcequotas",
  kind: "ResourceQuota",
  namespaced: true,
};

interface StatefulSet extends KubeObject {
  spec?: object;
}
const statefulSets: Resource<StatefulSet> = {
  group: "apps",
  version: "v1",
  plural: "statefulsets",
  kind: "StatefulSet",
  namespaced: true,
};
interface StorageClass extends KubeObject {
  provisioner?: string;
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: string;
}
const storageClasses: Resource<StorageClass> = {
  group: "storage.k8s.io",
  version: "v1",
  plural: "storageclasses",
  kind: "StorageClass",
  namespaced: false,
};

/** Lets claims of the class grow in a cluster. */
async function allowGrowth(client: ClusterClient, finished: Finished): Promise<void> {
  await client.create(storageClasses, {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: CLASS },
    provisioner: "example.com/none",
    allowVolumeExpansion: true,
  });
  finished(() => client.delete(storageClasses, { name: CLASS }));
}

/** Creates a namespace in all clusters. */
async function namespaceOf(onFinished: Finished = onTestFinished): Promise<string> {
  const everywhere = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  return await freshNamespace(everywhere, { prefix: "claims", labels, deleted: true, onFinished });
}

/** Creates a volume in a member that only claims of the namespace may bind. */
async function volumeIn(
  member: ClusterClient,
  namespace: string,
  finished: Finished,
  { ofClaim = "data", storageClassName = CLASS } = {},
): Promise<void> {
  const name = `${namespace}-${ofClaim}`;
  const claimRef = { namespace, name: ofClaim };
  await makeVolume(member, { name, storageClassName, path: "/nowhere", claimRef }, finished);
}

function claim(namespace: string, spec: PersistentVolumeClaim["spec"] = {}): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace, name: "data", labels: { app: "db" } },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: CLASS,
      resources: { requests: { storage: "1Gi" } },
      ...spec,
    },
  };
}

function user(namespace: string, name: string, clusters?: string): Pod {
  return delegatedPod(namespace, name, {
    annotations: clusters === undefined ? {} : { "legation.dev/clusters": clusters },
    spec: {
      automountServiceAccountToken: false,
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    },
  });
}

function running(namespace: string, name: string): Promise<Stored<Pod>> {
  return podThat(clients().host, namespace, name, inPhase("Running"), PATIENT);
}

function dataIn(client: ClusterClient, namespace: string): Promise<Stored<PersistentVolumeClaim> | undefined> {
  return client.find(persistentVolumeClaims, { namespace, name: "data" });
}

async function saysOn(namespace: string, name: string, text: string): Promise<void> {
  await eventuallyPasses(async () => {
    const pod = await clients().host.get(pods, { namespace, name });
    expect(whyNotPlaced(pod)?.message).toContain(text);
  }, PATIENT);
}

async function gone(client: ClusterClient, namespace: string): Promise<void> {
  await eventually(async () => (await dataIn(client, namespace)) === undefined, {
    ...PATIENT,
    what: `the end of the claim of ${namespace}`,
  });
}

describe.concurrent("a claim of the host", () => {
  test("is bound in the member of its first pod, keeps later pods there, and names the member in its annotations", async (context) => {
    const { host, west, east } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await volumeIn(west, namespace, context.onTestFinished);
    const source = await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "first", "west"));
    await running(namespace, "first");

    const there = await dataIn(west, namespace);
    expect(there?.status?.phase).toBe("Bound");
    expect(there?.metadata.labels).toMatchObject({ app: "db" });
    expect(there?.spec).toMatchObject({ accessModes: ["ReadWriteOnce"], storageClassName: CLASS });
    expect(there && ownerOf(there)?.uid).toBe(source.metadata.uid);
    await eventuallyPasses(async () => {
      const { annotations = {} } = (await host.get(persistentVolumeClaims, { namespace, name: "data" })).metadata;
      expect(annotations["legation.dev/cluster"]).toBe("west");
      expect(JSON.parse(annotations["legation.dev/claim-status"] ?? "{}")).toMatchObject({
        uid: there?.metadata.uid,
        phase: "Bound",
        capacity: "1Gi",
      });
    }, PATIENT);

    await host.create(pods, user(namespace, "second"));
    const second = await running(namespace, "second");
    expect(second.spec?.nodeName).toBe("legation-west");
    await host.create(pods, user(namespace, "elsewhere", "east"));
    await saysOn(namespace, "elsewhere", "east: PersistentVolumeClaim data, which the pod needs, is in west");
    expect(await dataIn(east, namespace)).toBeUndefined();
  });

  test("gets no empty volume on the host for a pod that stays there while its data is in a member", async (context) => {
    const { host, west } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    const storageClassName = namespace;
    await host.create(storageClasses, {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: storageClassName },
      provisioner: "example.com/none",
      volumeBindingMode: "WaitForFirstConsumer",
    });
    context.onTestFinished(() => host.delete(storageClasses, { name: storageClassName }));
    await volumeIn(west, namespace, context.onTestFinished, { storageClassName });
    await host.create(persistentVolumeClaims, claim(namespace, { storageClassName }));
    await host.create(pods, user(namespace, "first", "west"));
    await running(namespace, "first");

    const { metadata, ...rest } = user(namespace, "backup");
    const annotations = { ...metadata?.annotations, "legation.dev/delegate": "false" };
    await host.create(pods, { ...rest, metadata: { ...metadata, annotations } });
    await eventuallyPasses(async () => {
      const { status } = await host.get(pods, { namespace, name: "backup" });
      const said = status?.conditions?.find(({ type }) => type === "PodScheduled");
      expect(said?.message).toContain("data of claim data is in the member west");
    }, PATIENT);
    const { annotations: written } = (await host.get(persistentVolumeClaims, { namespace, name: "data" })).metadata;
    expect(written).not.toHaveProperty(["volume.kubernetes.io/selected-node"]);
  });

  test("makes pods wait until it exists, and is refused if its data is on the host or comes from there", async (context) => {
    const { host } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await host.create(pods, user(namespace, "early", "west"));
    await saysOn(namespace, "early", 'persistentvolumeclaim "data" not found');
    await host.create(persistentVolumeClaims, claim(namespace, { volumeName: "of-the-host" }));
    await saysOn(namespace, "early", "it is bound to volume of-the-host of the host");
    expect(await dataIn(clients().west, namespace)).toBeUndefined();
  });

  test("keeps the member's claim until its own end, and a new claim of the same name never gets that data", async (context) => {
    const { host, west } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await volumeIn(west, namespace, context.onTestFinished);
    await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "first", "west"));
    await running(namespace, "first");
    const before = await dataIn(west, namespace);

    // A pod uses the claim: Kubernetes keeps it on the host, so it stays in the member.
    await host.delete(persistentVolumeClaims, { namespace, name: "data" });
    expect((await dataIn(host, namespace))?.metadata.deletionTimestamp).toBeDefined();
    await host.delete(pods, { namespace, name: "first" }, { gracePeriodSeconds: 0 });
    await gone(host, namespace);
    const renewed = await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "second", "west"));
    const after = await eventually(
      async () => {
        const there = await dataIn(west, namespace);
        if (there !== undefined && ownerOf(there)?.uid === renewed.metadata.uid) return there;
        const waits = await host.get(pods, { namespace, name: "second" });
        throw new Error(`west has ${JSON.stringify(there ?? null)}; ${JSON.stringify(waits.status?.conditions)}`);
      },
      { ...PATIENT, what: "a new claim" },
    );
    expect(after.metadata.uid).not.toBe(before?.metadata.uid);
    // The volume belongs to the first claim and its data: Kubernetes gives it to no other.
    expect(after.status?.phase).not.toBe("Bound");

    await host.delete(pods, { namespace, name: "second" }, { gracePeriodSeconds: 0 });
    await host.delete(persistentVolumeClaims, { namespace, name: "data" });
    await gone(west, namespace);
  });

  test("does not touch a foreign claim of its name in the member, and goes to another member", async (context) => {
    const { host, west, east } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await volumeIn(east, namespace, context.onTestFinished);
    const foreign = await west.create(persistentVolumeClaims, claim(namespace));
    await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "first", "west"));
    await saysOn(namespace, "first", "is there already and was not made by Legation for this host");
    await host.create(pods, user(namespace, "second", "west,east"));
    expect((await running(namespace, "second")).spec?.nodeName).toBe("legation-east");
    expect(await dataIn(west, namespace)).toEqual(
      expect.objectContaining({ metadata: expect.objectContaining({ uid: foreign.metadata.uid }) }),
    );

    // A new claim of that name starts without the refusal.
    await Promise.all(
      ["first", "second"].map((name) => host.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 })),
    );
    await host.delete(persistentVolumeClaims, { namespace, name: "data" });
    await west.delete(persistentVolumeClaims, { namespace, name: "data" });
    await Promise.all([gone(host, namespace), gone(west, namespace)]);
    const renewed = await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "third", "west"));
    await eventually(
      async () => {
        const there = await dataIn(west, namespace);
        return there !== undefined && ownerOf(there)?.uid === renewed.metadata.uid;
      },
      { timeoutMs: 25_000, what: "the new claim" },
    );
  });

  test("follows each replica of a StatefulSet to its member, with the class that replaces its own there", async (context) => {
    const { host, west, east } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    const classes = { spec: { storageClasses: { fast: CLASS } } };
    await host.patch(clusters, { name: "west" }, { type: "merge", body: classes });
    context.onTestFinished(async () => {
      const body = { spec: { storageClasses: null } };
      await host.patch(clusters, { name: "west" }, { type: "merge", body });
    });
    for (const number of [0, 1])
      await volumeIn(west, namespace, context.onTestFinished, { ofClaim: `data-db-${number}` });
    const selector = { matchLabels: { app: "db" } };
    const template = user(namespace, "db", "west");
    const { metadata: _, ...ofTemplate } = claim(namespace, { storageClassName: "fast" });
    await host.create(statefulSets, {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { namespace, name: "db" },
      spec: {
        replicas: 2,
        serviceName: "db",
        selector,
        template: {
          metadata: { labels: { app: "db" }, annotations: template.metadata?.annotations },
          spec: { ...template.spec, volumes: [], restartPolicy: "Always" },
        },
        volumeClaimTemplates: [{ ...ofTemplate, metadata: { name: "data" } }],
      },
    });
    for (const number of [0, 1]) {
      await running(namespace, `db-${number}`);
      const there = await west.get(persistentVolumeClaims, { namespace, name: `data-db-${number}` });
      expect(there.spec).toMatchObject({ storageClassName: CLASS, volumeName: `${namespace}-data-db-${number}` });
      expect(await east.find(persistentVolumeClaims, { namespace, name: `data-db-${number}` })).toBeUndefined();
    }
  });

  test("is created once, in one member, when many pods name it at once, and all of them run there", async (context) => {
    const { host, west, east } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    for (const member of [west, east]) await volumeIn(member, namespace, context.onTestFinished);
    const names = Array.from({ length: 6 }, (_, index) => `at-once-${index}`);
    await host.create(persistentVolumeClaims, claim(namespace));
    await Promise.all(names.map((name) => host.create(pods, user(namespace, name))));
    const all = await Promise.all(names.map((name) => running(namespace, name)));
    expect(new Set(all.map(({ spec }) => spec?.nodeName)).size).toBe(1);
    const made = await Promise.all([west, east].map((member) => dataIn(member, namespace)));
    expect(made.filter((one) => one !== undefined)).toHaveLength(1);
  });

  test("grows in its member when it grows on the host, and has an event when the member forbids it", async (context) => {
    const { host, west } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await volumeIn(west, namespace, context.onTestFinished);
    await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "first", "west"));
    await running(namespace, "first");
    const ref = { namespace, name: "data" };
    const body = { spec: { resources: { requests: { storage: "2Gi" } } } };
    const grow = (): Promise<object> => host.patch(persistentVolumeClaims, ref, { type: "merge", body });
    await expect(grow()).rejects.toThrow(
      /spec is immutable after creation except resources.requests .*for bound claims/,
    );
    const told = async (): Promise<unknown> => {
      const { annotations = {} } = (await host.get(persistentVolumeClaims, ref)).metadata;
      return JSON.parse(annotations["legation.dev/claim-status"] ?? "{}");
    };
    // Stands for the host's provisioner, which binds the claim only after it has a member.
    await allowGrowth(host, context.onTestFinished);
    await volumeIn(host, namespace, context.onTestFinished);
    // Kubernetes looks at a claim when it changes, and every 15 s.
    await host.patch(persistentVolumeClaims, ref, {
      type: "merge",
      body: { metadata: { annotations: { look: "again" } } },
    });
    await eventually(async () => (await dataIn(host, namespace))?.status?.phase === "Bound", PATIENT);
    await grow();
    await eventuallyPasses(async () => {
      expect(await told()).toMatchObject({
        phase: "Bound",
        notGrown: expect.stringContaining("only dynamically provisioned pvc can be resized"),
      });
    }, PATIENT);
    expect((await dataIn(west, namespace))?.spec?.resources?.requests).toEqual({ storage: "1Gi" });
  });

  test("goes to another member when a quota refuses it", async (context) => {
    const { host, west, east } = clients();
    const namespace = await namespaceOf(context.onTestFinished);
    await volumeIn(east, namespace, context.onTestFinished);
    const spec = { hard: { persistentvolumeclaims: "0" } };
    await west.create(quotas, {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { namespace, name: "none" },
      spec,
    });
    await eventuallyPasses(async () => {
      expect(await west.get(quotas, { namespace, name: "none" })).toHaveProperty("status.hard");
    }, PATIENT);
    await host.create(persistentVolumeClaims, claim(namespace));
    await host.create(pods, user(namespace, "first", "west"));
    await saysOn(namespace, "first", "its API server refused PersistentVolumeClaim data, which the pod needs");
    await host.create(pods, user(namespace, "second"));
    expect((await running(namespace, "second")).spec?.nodeName).toBe("legation-east");
  });
});

test("removes a claim with its namespace, even if its member hung meanwhile", async () => {
  const { host, east } = clients();
  const namespace = await namespaceOf();
  await volumeIn(east, namespace, onTestFinished);
  await host.create(persistentVolumeClaims, claim(namespace));
  await host.create(pods, user(namespace, "first", "east"));
  await running(namespace, "first");
  const member = memberCluster("east");
  onTestFinished(() => member.mend());
  await host.delete(pods, { namespace, name: "first" }, { gracePeriodSeconds: 0 });
  await podGone(host, namespace, "first");
  await member.apiServer.freeze();
  await host.delete(namespaces, { name: namespace });
  await eventually(async () => (await host.find(namespaces, { name: namespace })) === undefined, {
    ...PATIENT,
    what: "the end of the namespace, which waits for no member",
  });
  await member.mend();
  await gone(east, namespace);
});

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  const host = (write: Write, method: string): boolean =>
    write.method === method && write.path.endsWith("/persistentvolumeclaims/data");
  const points = [
    [
      "that records the member's name",
      "host",
      (write: Write) => host(write, "PATCH") && write.body.includes("legation.dev/cluster"),
    ],
    [
      "that creates the claim",
      "member",
      (write: Write) => write.method === "POST" && write.path.endsWith("/persistentvolumeclaims"),
    ],
    ["that removes the claim", "member", (write: Write) => host(write, "DELETE")],
  ] as const;
  test.each(points)("finishes after a restart: the write %s", async (_, where, catches) => {
    const { legation, trap } = gated();
    const namespace = await namespaceOf();
    await volumeIn(clients().west, namespace, onTestFinished);
    let killed = false;
    trap(where, {
      when,
      catches: (write) => write.path.includes(`/namespaces/${namespace}/`) && catches(write),
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    const follow = async (): Promise<void> => {
      await eventually(() => killed, { ...PATIENT, what: "the write" });
      await legation.controller.start();
    };
    const live = async (): Promise<void> => {
      await clients().host.create(persistentVolumeClaims, claim(namespace));
      await clients().host.create(pods, user(namespace, "first", "west"));
      await running(namespace, "first");
      expect(await dataIn(clients().east, namespace)).toBeUndefined();
      await clients().host.delete(pods, { namespace, name: "first" }, { gracePeriodSeconds: 0 });
      await clients().host.delete(persistentVolumeClaims, { namespace, name: "data" });
      await gone(clients().west, namespace);
    };
    await Promise.all([live(), follow()]);
  });
});
