import { beforeAll, describe, expect, test } from "vitest";
import { GROUP } from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { isDeleting } from "../../src/pods/pod-state.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { stopNow } from "../support/delegated/stop-now.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

// Each update is made twice: of a pod on a plain cluster and of a delegated one. A client leaves out
// what it does not know, so both must end alike.

useLegation();
const clients = useClients();

const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";

/** A side of the comparison. */
interface Side {
  readonly cluster: Cluster;
  readonly client: ClusterClient;
  readonly namespace: string;
}

let sides: { readonly plain: Side; readonly host: Side };

beforeAll(async () => {
  const plain = memberCluster("west");
  const host = hostCluster();
  const [there, here] = await Promise.all([
    freshNamespace(plain, { onFinished: afterFile }),
    freshNamespace(host, { labels: { "legation.dev/delegation": "all" }, onFinished: afterFile }),
  ]);
  sides = {
    plain: { cluster: plain, client: clients().west, namespace: there },
    host: { cluster: host, client: clients().host, namespace: here },
  };
});

const GATES = [{ name: "example.com/wait" }];
const running = inPhase("Running");

/** Returns a pod with all that admission adds on every cluster, so that the manifest may replace it. */
function manifest(name: string, spec: object = {}, labels: object = { app: "web" }): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { ...labels }, annotations: { note: "kept" } },
    spec: {
      containers: [{ name: "main", image: "main:1" }],
      serviceAccountName: "default",
      automountServiceAccountToken: false,
      ...spec,
    },
  };
}

function run({ cluster, namespace }: Side, args: readonly string[], input?: object): Promise<string> {
  return kubectl(cluster, ["-n", namespace, ...args], input === undefined ? {} : { input: JSON.stringify(input) });
}

async function read({ client, namespace }: Side, name: string): Promise<Stored<Pod>> {
  return await client.get(pods, { namespace, name });
}

const isMark = (key: string): boolean => key.startsWith(`${GROUP}/`);

function entries(map: Readonly<Record<string, string>> = {}): [string, string][] {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns Legation's marks on a pod. */
function marks({ metadata, spec }: Pod): object {
  return {
    labels: entries(metadata?.labels).filter(([key]) => isMark(key)),
    annotations: entries(metadata?.annotations).filter(([key]) => isMark(key)),
    finalizers: metadata?.finalizers?.filter(isMark),
    schedulerName: spec?.schedulerName,
  };
}

/** Returns the author's view of a pod, without Legation's marks. */
function seen({ metadata, spec }: Pod): object {
  return {
    labels: entries(metadata?.labels).filter(([key]) => !isMark(key)),
    annotations: entries(metadata?.annotations).filter(([key]) => !isMark(key)),
    finalizers: metadata?.finalizers?.filter((key) => !isMark(key)) ?? [],
    containers: spec?.containers.map(({ image }) => image),
    tolerations: spec?.tolerations,
    gates: spec?.schedulingGates,
  };
}

/** Returns the pod as a client writes it back that keeps only the metadata which identify it. */
function bare({ metadata, ...pod }: Stored<Pod>, changed: object = {}): object {
  const { name, namespace, uid, resourceVersion, ownerReferences } = metadata;
  const owners = ownerReferences === undefined ? {} : { ownerReferences };
  return {
    ...pod,
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid, resourceVersion, ...owners, ...changed },
  };
}

const patch =
  (type: string, body: object, ...more: string[]) =>
  (side: Side, name: string): Promise<string> =>
    run(side, ["patch", `pod/${name}`, `--type=${type}`, "-p", JSON.stringify(body), ...more]);
const MARK = "legation.dev/proxy";

interface Update {
  readonly how: string;
  readonly update: (side: Side, name: string) => Promise<unknown>;
  readonly labels?: object;
}

const UPDATES: readonly Update[] = [
  { how: "a merge patch without labels", update: patch("merge", { metadata: { labels: null } }) },
  { how: "a merge patch without annotations", update: patch("merge", { metadata: { annotations: null } }) },
  { how: "a merge patch without finalizers", update: patch("merge", { metadata: { finalizers: null } }) },
  {
    how: "a merge patch of the status",
    update: patch("merge", { metadata: { labels: null, annotations: null } }, "--subresource=status"),
  },
  {
    how: "a JSON patch of all labels",
    update: patch("json", [{ op: "replace", path: "/metadata/labels", value: { app: "other" } }]),
  },
  {
    how: "a strategic patch of all labels and annotations",
    update: patch("strategic", {
      metadata: { labels: { $patch: "replace", app: "other" }, annotations: { $patch: "replace", note: "new" } },
    }),
  },
  {
    how: "a PUT of what was read, with nothing but a label",
    update: async (side, name) =>
      run(side, ["replace", "-f", "-"], bare(await read(side, name), { labels: { app: "other" } })),
  },
  {
    how: "a PUT of what was read, without metadata and with another image",
    update: async (side, name) => {
      const pod = await read(side, name);
      const [main] = pod.spec?.containers ?? [];
      const spec = { ...pod.spec, containers: [{ ...main, image: "main:2" }] };
      await run(side, ["replace", "-f", "-"], { ...bare(pod), spec });
    },
  },
  {
    how: "a PUT of the status, without metadata",
    update: async (side, name) => {
      const path = `/api/v1/namespaces/${side.namespace}/pods/${name}/status`;
      await run(side, ["replace", `--raw=${path}`, "-f", "-"], bare(await read(side, name)));
    },
  },
  {
    how: "a forced server-side apply that gives up the labels of all others",
    update: async (side, name) => {
      const args = ["apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-"];
      const applied = (labels: object): object => ({ apiVersion: "v1", kind: "Pod", metadata: { name, labels } });
      const { metadata } = await read(side, name);
      await run(side, args, applied(metadata.labels ?? {}));
      await run(side, args, applied({}));
    },
  },
];

describe.concurrent("an update that leaves out Legation's marks", () => {
  describe.for([
    { state: "waits", spec: { schedulingGates: GATES }, until: (pod: Pod) => pod.spec?.nodeName === undefined },
    { state: "runs", spec: {}, until: running },
  ])("of a pod that $state", ({ state, spec, until }) => {
    test.for(UPDATES)("leaves the pod as on a plain cluster, with its marks: $how", async ({ how, update }) => {
      const name = `${state}-${UPDATES.findIndex((one) => one.how === how)}`;
      const ends = await Promise.all(
        Object.values(sides).map(async (side) => {
          await run(side, ["create", "-f", "-"], manifest(name, spec));
          const before = await podThat(side.client, side.namespace, name, until);
          await update(side, name);
          const after = await read(side, name);
          const grown = (after.metadata.generation ?? 0) - (before.metadata.generation ?? 0);
          return { marks: [marks(before), marks(after)], seen: { ...seen(after), grown } };
        }),
      );
      const [plain, host] = ends;
      expect(host?.seen).toEqual(plain?.seen);
      expect(host?.marks[1]).toEqual(host?.marks[0]);
      expect(JSON.stringify(host?.marks[1])).toContain(MARK);
    });
  });
});

describe.concurrent("the author's own manifest", () => {
  const spec = { schedulerName: "volcano", schedulingGates: GATES, tolerations: [{ key: "spot", operator: "Exists" }] };

  test.for([
    { how: "kubectl replace", args: ["replace", "-f", "-"] },
    { how: "kubectl apply", args: ["apply", "-f", "-"] },
    { how: "kubectl apply --server-side", args: ["apply", "--server-side", "--force-conflicts", "-f", "-"] },
  ])("can be written again by $how before the pod has a node", async ({ how, args }) => {
    const name = how.replaceAll(/\W+/g, "-");
    const first = args.includes("replace") ? ["create", "-f", "-"] : args;
    const ends = await Promise.all(
      Object.values(sides).map(async (side) => {
        await run(side, first, manifest(name, spec));
        const before = await read(side, name);
        await run(side, args, manifest(name, spec, { app: "other" }));
        const after = await read(side, name);
        return { marks: [marks(before), marks(after)], seen: seen(after), generation: after.metadata.generation };
      }),
    );
    const [plain, host] = ends.map(({ marks: _, ...rest }) => {
      const { annotations, ...other } = { annotations: undefined, ...rest.seen };
      return { ...rest, seen: other };
    });
    expect(host).toEqual(plain);
    expect(ends[1]?.marks[1]).toEqual(ends[1]?.marks[0]);
    expect(ends[1]?.marks[1]).toMatchObject({ schedulerName: "legation" });
  });

  test("is refused once the pod has a node, with the message of a plain cluster", async () => {
    const refusals = await Promise.all(
      Object.values(sides).map(async (side) => {
        await run(side, ["create", "-f", "-"], manifest("replaced"));
        const { spec: { nodeName = "" } = {} } = await podThat(side.client, side.namespace, "replaced", running);
        const refused = run(side, ["replace", "-f", "-"], manifest("replaced", {}, { app: "other" }));
        const said: unknown = await refused.catch((error: unknown) => error);
        return String(said)
          .replace(/^.*?: The Pod/s, "The Pod")
          .replaceAll(nodeName, "NODE");
      }),
    );
    expect(refusals[0]).toContain("pod updates may not change fields other than");
    expect(refusals[1]).toBe(refusals[0]);
  });

  test("keeps the tolerations of failover: never", async () => {
    const { host } = sides;
    const annotations = { "legation.dev/failover": "never" };
    const written = manifest("stays", spec);
    const input = { ...written, metadata: { ...written.metadata, annotations } };
    await run(host, ["create", "-f", "-"], input);
    const before = await read(host, "stays");
    await run(host, ["replace", "-f", "-"], input);
    const lost = ({ spec }: Pod): unknown =>
      spec?.tolerations?.filter(({ key = "" }) => key.startsWith("node.kubernetes.io/"));
    expect(lost(before)).toHaveLength(2);
    expect(lost(await read(host, "stays"))).toEqual(lost(before));
  });

  test("is refused with another scheduler name", async () => {
    const { host } = sides;
    await run(host, ["create", "-f", "-"], manifest("moved", spec));
    const other = manifest("moved", { ...spec, schedulerName: "yunikorn" });
    await expect(run(host, ["replace", "-f", "-"], other)).rejects.toThrow("pod updates may not change fields");
  });
});

describe.concurrent("a pod whose marks a user removes", () => {
  const WARNING = "Legation restores its own keys on an object";

  test.for([
    { what: "the label", args: ["label", "pod/NAME", "legation.dev/proxy-"] },
    { what: "the finalizer", args: ["patch", "pod/NAME", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'] },
    { what: "a decision", args: ["annotate", "pod/NAME", "legation.dev/cluster-"] },
  ])("keeps $what, and the user gets a warning", async ({ what, args }) => {
    const { host } = sides;
    const name = what.replace(" ", "-");
    await run(host, ["create", "-f", "-"], manifest(name));
    const before = await podThat(host.client, host.namespace, name, running);
    // kubectl fails on a warning.
    const strict = run(host, [...args.map((arg) => arg.replace("NAME", name)), "--warnings-as-errors"]);
    await expect(strict).rejects.toThrow(WARNING);
    expect(marks(await read(host, name))).toEqual(marks(before));
  });

  test("keeps its finalizer while it is being deleted, and goes when its delegate has gone", async () => {
    const { host } = sides;
    const pod = manifest("ending");
    const annotations = { [KWOK_ANNOTATIONS.stopsAfter]: "100s" };
    await run(host, ["create", "-f", "-"], { ...pod, metadata: { ...pod.metadata, annotations } });
    const { spec } = await podThat(host.client, host.namespace, "ending", running);
    await run(host, ["delete", "pod/ending", "--wait=false"]);
    const ending = await podThat(host.client, host.namespace, "ending", isDeleting);
    await run(host, ["replace", "-f", "-"], bare(ending, { labels: { app: "web" }, annotations }));
    expect(marks(await read(host, "ending"))).toEqual(marks(ending));
    const member = spec?.nodeName === "legation-west" ? clients().west : clients().east;
    await stopNow(member, host.namespace, "ending");
    await podGone(host.client, host.namespace, "ending");
  });

  test("keeps its mark in overflow mode", async ({ onTestFinished }) => {
    const labels = { "legation.dev/delegation": "overflow" };
    const namespace = await freshNamespace(sides.host.cluster, { labels, onFinished: onTestFinished });
    const side = { ...sides.host, namespace };
    await run(side, ["create", "-f", "-"], manifest("web", { schedulingGates: GATES }));
    const before = await read(side, "web");
    await run(side, ["replace", "-f", "-"], manifest("web", { schedulingGates: GATES }, { app: "other" }));
    const after = await read(side, "web");
    expect(after.metadata.labels).toEqual({ app: "other", [MARK]: "overflow" });
    expect(marks(after)).toEqual(marks(before));
  });
});

test("keeps a pod running that new labels take out of its ReplicaSet, and another pod takes its place", async () => {
  const ends = await Promise.all(
    Object.values(sides).map(async (side) => {
      const template = { metadata: { labels: { app: "released" } }, spec: manifest("").spec };
      const spec = { replicas: 1, selector: { matchLabels: { app: "released" } }, template };
      const replicaSet = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "released" }, spec };
      await run(side, ["create", "-f", "-"], replicaSet);
      const own = async (): Promise<Stored<Pod>[]> =>
        (await podsOf(side.client, side.namespace)).filter(({ metadata }) => metadata.name.startsWith("released-"));
      const [first] = await eventually(async () => {
        const found = await own();
        return found.length === 1 && found.every(running) ? found : undefined;
      });
      if (first === undefined) throw new Error("no pod");
      await run(side, ["replace", "-f", "-"], bare(first, { labels: { app: "looked-at" } }));
      const both = await eventually(async () => {
        const found = await own();
        return found.length === 2 && found.every(running) ? found : undefined;
      });
      const released = both.find(({ metadata }) => metadata.uid === first.metadata.uid);
      return { owners: released?.metadata.ownerReferences ?? [], ...(released === undefined ? {} : seen(released)) };
    }),
  );
  expect(ends[1]).toEqual(ends[0]);
  expect(ends[0]?.owners).toEqual([]);
});

describe("an update of another object that leaves out Legation's annotations", () => {
  interface Row {
    readonly kind: string;
    /** Creates the object with Legation's annotations. */
    readonly make: (side: Side) => Promise<unknown>;
    readonly object: string;
    /** The annotations that must stay. */
    readonly kept: readonly string[];
  }

  const strip = { annotations: undefined, labels: undefined, finalizers: undefined };
  const claim = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data" },
    spec: { accessModes: ["ReadWriteOnce"], storageClassName: "none", resources: { requests: { storage: "1Gi" } } },
  };

  test.each<Row>([
    {
      kind: "PersistentVolumeClaim",
      object: "persistentvolumeclaim/data",
      kept: ["legation.dev/cluster"],
      make: async (side) => {
        await run(side, ["create", "-f", "-"], claim);
        const admin = ["--as-group=system:masters", `--as=${CONTROLLER}`];
        await run(side, ["annotate", "persistentvolumeclaim/data", "legation.dev/cluster=west", ...admin]);
      },
    },
    { kind: "Cluster", object: "clusters.legation.dev/west", kept: ["legation.dev/member-uid"], make: async () => {} },
  ])("keeps them on a $kind", async ({ make, object, kept }) => {
    const { host } = sides;
    await make(host);
    const get = async (): Promise<{ metadata: { annotations?: Record<string, string> } }> =>
      JSON.parse(await run(host, ["get", object, "-o", "json"]));
    const before = await get();
    // The controller writes a Cluster's status between the two now and then, so that the server refuses the replacement.
    await eventuallyPasses(async () => {
      const { managedFields: _, ...metadata } = { managedFields: undefined, ...(await get()).metadata };
      await run(host, ["replace", "-f", "-"], { ...before, metadata: { ...metadata, ...strip } });
    });
    const after = await get();
    for (const key of kept) {
      expect(before.metadata.annotations?.[key]).toBeDefined();
      expect(after.metadata.annotations?.[key]).toBe(before.metadata.annotations?.[key]);
    }
  });
});

describe("a copy whose marks a client in the member removes", () => {
  const KINDS = ["configmap", "secret", "serviceaccount", "service", "networkpolicy"];
  let namespace = "";

  beforeAll(async () => {
    namespace = await freshNamespace(hostCluster(), {
      labels: { "legation.dev/delegation": "all" },
      annotations: { "legation.dev/clusters": "west" },
      onFinished: afterFile,
    });
    const metadata = { name: "shared", labels: { app: "web" } };
    const volumes = [
      { name: "config", configMap: { name: "shared" } },
      { name: "secret", secret: { secretName: "shared" } },
    ];
    const items = [
      { apiVersion: "v1", kind: "ConfigMap", metadata, data: { key: "value" } },
      { apiVersion: "v1", kind: "Secret", metadata, stringData: { key: "value" } },
      { apiVersion: "v1", kind: "ServiceAccount", metadata },
      { apiVersion: "v1", kind: "Service", metadata, spec: { selector: { app: "web" }, ports: [{ port: 80 }] } },
      { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata, spec: { podSelector: {}, ingress: [{}] } },
      manifest("user", { serviceAccountName: "shared", volumes }),
    ];
    const side = { ...sides.host, namespace };
    await run(side, ["create", "-f", "-"], { apiVersion: "v1", kind: "List", items });
    await podThat(side.client, namespace, "user", running);
  });

  interface Copy {
    readonly metadata: {
      readonly name: string;
      readonly uid: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    };
  }

  async function copyOf(kind: string): Promise<Copy> {
    const found = await kubectl(memberCluster("west"), ["-n", namespace, "get", kind, "-o", "json"]);
    const { items }: { readonly items: readonly Copy[] } = JSON.parse(found);
    const copy = items.find(({ metadata }) => /shared/.test(metadata.name));
    if (copy === undefined) throw new Error(`no ${kind}`);
    return copy;
  }

  test.each(KINDS.flatMap((kind) => ["labels", "annotations"].map((what) => ({ kind, what }))))(
    "gets its $what back: $kind",
    async ({ kind, what }) => {
      const before = await eventually(() => copyOf(kind));
      const patch = JSON.stringify({ metadata: { [what]: null } });
      const { name, uid } = before.metadata;
      await kubectl(memberCluster("west"), ["-n", namespace, "patch", kind, name, "--type=merge", "-p", patch]);
      const kept = ({ metadata: { labels, annotations } }: Copy): object => ({ ...labels, ...annotations });
      const after = await eventually(async () => {
        const copy = await copyOf(kind);
        return Object.keys(kept(copy)).length === Object.keys(kept(before)).length ? copy : undefined;
      });
      expect(kept(after)).toEqual(kept(before));
      expect(after.metadata.uid).toBe(uid);
    },
  );
});
