import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { COPY_LABEL, HOST_LABEL } from "../../src/api/keys.ts";
import type { Container, KubeObject, Pod, PodSpec, Stored } from "../../src/api/kubernetes.ts";
import type { DependencyObject } from "../../src/copies/dependencies.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { configMaps, events, pods, type Resource, secrets, serviceAccounts } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { auditEvents, isWrite } from "../support/clusters/audit.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Write } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();

const labels = { "legation.dev/delegation": "annotated" };
const everywhere = [hostCluster(), memberCluster("west"), memberCluster("east")];
const patient = { timeoutMs: 90_000 };
const WEST = { "legation.dev/clusters": "west" };

let namespace: string;
/** Checks for the end of tests, by namespace: copies stay for ten seconds after their last user. */
const lingering = new Map<string, () => Promise<void>>();
beforeEach(async () => {
  const onFinished = (cleanUp: () => Promise<void>): void =>
    onTestFinished(async () => {
      if (lingering.has(namespace)) afterFile(cleanUp);
      else await cleanUp();
    });
  namespace = await freshNamespace(everywhere, { prefix: "needs", labels, onFinished });
  // A failed test may have left it killed.
  await gated().legation.controller.start();
});

type Env = NonNullable<Container["envFrom"]>;
const settings: Env = [{ configMapRef: { name: "settings" } }];

function user(name: string, envFrom: Env = settings, spec: Partial<PodSpec> = {}, annotations = WEST): Pod {
  const containers = [{ name: "main", image: "work:1", envFrom }];
  // A pod that mounts a token costs two writes more; home-api.test.ts counts them.
  return delegatedPod(namespace, name, {
    annotations,
    spec: { automountServiceAccountToken: false, containers, ...spec },
  });
}

function running(name: string): Promise<Stored<Pod>> {
  return podThat(clients().host, namespace, name, inPhase("Running"), patient);
}

async function run(pod: Pod): Promise<Stored<Pod>> {
  await clients().host.create(pods, pod);
  return running(pod.metadata?.name ?? "");
}

function object(
  kind: string,
  name: string,
  content: Omit<DependencyObject, "metadata"> = {},
  metadata: object = {},
): DependencyObject {
  return { apiVersion: "v1", kind, metadata: { name, namespace, ...metadata }, ...content };
}

function makeSettings(
  client: ClusterClient,
  data: Record<string, string> = { color: "blue" },
): Promise<Stored<KubeObject>> {
  return client.create(configMaps, object("ConfigMap", "settings", { data }));
}

function found<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  name: string,
): Promise<Stored<T> | undefined> {
  return client.find(resource, { namespace, name });
}

/** Waits for the end of the copy of `settings` in west. */
async function copyGoes(of = namespace): Promise<void> {
  const ref = { namespace: of, name: "settings" };
  await eventually(async () => (await clients().west.find(configMaps, ref)) === undefined, {
    ...patient,
    what: `the end of settings in ${of}`,
  });
}

/** Lets the last test wait for the end of this test's copy, and then run `andThen`. */
function copyGoesLater(andThen: () => Promise<void> = async () => {}): void {
  const of = namespace;
  lingering.set(of, async () => {
    await copyGoes(of);
    await andThen();
  });
}

async function saysOn(name: string, text: string): Promise<void> {
  await eventually(
    async () => {
      const { items } = await clients().host.list(events, { namespace });
      return items.some(({ involvedObject, message }) => involvedObject.name === name && message?.includes(text));
    },
    { ...patient, what: `an event on ${name} with ${text}` },
  );
}

/** Returns Legation's writes on copies and delegates in a member, in order. */
async function writesIn(member: "west" | "east"): Promise<string[]> {
  const found = await auditEvents(
    memberCluster(member),
    (event) =>
      event.user.username.startsWith("system:serviceaccount:legation-system:") &&
      isWrite(event) &&
      event.objectRef?.namespace === namespace,
    [namespace],
  );
  return found.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`);
}

async function otherWrites(member: "west" | "east", of = namespace): Promise<readonly string[]> {
  return (await legationWrites(memberCluster(member), of)).others;
}

async function deletePods(): Promise<void> {
  const { host } = clients();
  const left = await podsOf(host, namespace);
  const remove = ({ metadata: { name } }: Stored<Pod>): Promise<void> =>
    host.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
      // The pod was being deleted already.
      if (!isKubeError(error, "NotFound")) throw error;
    });
  await Promise.all(left.map(remove));
}

describe("an object that a pod uses", () => {
  test("is in the member before the pod, with the same content", async () => {
    const { host, west, east } = clients();
    const metadata = {
      labels: { app: "web" },
      annotations: { note: "for tools", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    };
    await host.create(
      configMaps,
      object("ConfigMap", "settings", { data: { color: "blue" }, binaryData: { raw: "AAE=" } }, metadata),
    );
    await host.create(
      secrets,
      object("Secret", "login", {
        type: "kubernetes.io/basic-auth",
        data: { username: "cm9vdA==", password: "eA==" },
        immutable: true,
      }),
    );
    await host.create(
      secrets,
      object("Secret", "registry", { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": "e30=" } }),
    );
    await host.create(serviceAccounts, {
      ...object(
        "ServiceAccount",
        "worker",
        { imagePullSecrets: [{ name: "registry" }], automountServiceAccountToken: false },
        { annotations: { "eks.amazonaws.com/role-arn": "arn" } },
      ),
    });
    const volumes = [{ name: "login", projected: { sources: [{ secret: { name: "login" } }] } }];
    await run(user("web", settings, { serviceAccountName: "worker", volumes }));

    const settingsThere = await west.get(configMaps, { namespace, name: "settings" });
    const source = await host.get(configMaps, { namespace, name: "settings" });
    expect(settingsThere).toMatchObject({ data: { color: "blue" }, binaryData: { raw: "AAE=" } });
    expect(settingsThere.metadata.labels).toEqual({
      app: "web",
      [HOST_LABEL]: expect.any(String),
      [COPY_LABEL]: "true",
    });
    expect(Object.keys(settingsThere.metadata.annotations ?? {}).sort()).toEqual([
      "legation.dev/forwarded",
      "legation.dev/owner",
    ]);
    expect(ownerOf(settingsThere)).toMatchObject({ namespace, name: "settings", uid: source.metadata.uid });
    expect(await west.get(secrets, { namespace, name: "login" })).toMatchObject({
      type: "kubernetes.io/basic-auth",
      data: { username: "cm9vdA==", password: "eA==" },
      immutable: true,
    });
    expect(await west.get(secrets, { namespace, name: "registry" })).toMatchObject({
      type: "kubernetes.io/dockerconfigjson",
    });
    expect(await west.get(serviceAccounts, { namespace, name: "worker" })).toMatchObject({
      metadata: { annotations: { "eks.amazonaws.com/role-arn": "arn" } },
      imagePullSecrets: [{ name: "registry" }],
      automountServiceAccountToken: false,
    });
    const writes = (await writesIn("west")).filter((write) => write.startsWith("create "));
    expect(writes.at(-1)).toBe("create pods");
    expect(writes.slice(0, -1).sort()).toEqual([
      "create configmaps",
      "create secrets",
      "create secrets",
      "create serviceaccounts",
    ]);
    expect(await writesIn("east")).toEqual([]);
    expect(await found(east, configMaps, "settings")).toBeUndefined();
  });

  test("has one copy, written once, for twenty pods that share it, and removed with the last of them", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    const names = numbered("web", 20);
    await Promise.all(names.map((name) => run(user(name))));
    expect(await otherWrites("west")).toEqual(["create configmaps"]);
    const there = await legationWrites(memberCluster("west"), namespace);
    expect([...there.pods.values()]).toEqual(names.map(() => ["create pods"]));
    const onHost = await legationWrites(hostCluster(), namespace);
    expect([...onHost.pods.values()]).toEqual(names.map(() => ["create pods/binding", "patch pods/status"]));
    expect(onHost.others).toEqual([]);
    const [last = "", ...others] = names;
    await Promise.all(others.map((name) => host.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 })));
    await Promise.all(others.map((name) => podGone(west, namespace, name, undefined, patient)));
    await run(user("later"));
    await host.delete(pods, { namespace, name: "later" }, { gracePeriodSeconds: 0 });
    await host.delete(pods, { namespace, name: last }, { gracePeriodSeconds: 0 });
    const shared = namespace;
    copyGoesLater(async () => {
      await eventuallyPasses(async () =>
        expect(await otherWrites("west", shared)).toEqual(["create configmaps", "delete configmaps"]),
      );
      expect(await host.find(configMaps, { namespace: shared, name: "settings" })).toBeDefined();
    });
  });

  test("makes the pod wait with the kubelet's words, and the pod goes on when it exists", async () => {
    const { host } = clients();
    const volumes = [{ name: "files", configMap: { name: "later" } }];
    await host.create(pods, user("web", [], { volumes }));
    await saysOn("web", 'MountVolume.SetUp failed for volume "files" : configmap "later" not found');
    expect(await writesIn("west")).toEqual([]);
    await host.create(configMaps, object("ConfigMap", "later"));
    await running("web");
    expect(await writesIn("west")).toEqual(["create configmaps", "create pods"]);
  });

  test("may be missing if it is optional, and is copied when it appears", async () => {
    const { host, west } = clients();
    await run(user("web", [{ secretRef: { name: "perhaps", optional: true } }]));
    expect(await otherWrites("west")).toEqual([]);
    await host.create(secrets, object("Secret", "perhaps", { data: { a: "Yg==" } }));
    await eventually(() => found(west, secrets, "perhaps"), patient);
  });

  test("is copied again when its content, labels, immutability or type changes", async () => {
    const { host, west } = clients();
    await host.create(
      configMaps,
      object("ConfigMap", "settings", { data: { color: "blue", old: "1" } }, { labels: { a: "1" } }),
    );
    await host.create(secrets, object("Secret", "login", { data: { a: "Yg==" }, immutable: true }));
    await host.create(configMaps, object("ConfigMap", "fixed", { data: { a: "b" }, immutable: true }));
    const uses = [{ configMapRef: { name: "settings" } }, { configMapRef: { name: "fixed" } }];
    await run(user("web", [...uses, { secretRef: { name: "login" } }]));
    const before = await west.get(configMaps, { namespace, name: "settings" });
    const body = { data: { color: "red", old: null }, metadata: { labels: { a: null, b: "2" } } };
    await host.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body });
    await eventuallyPasses(async () => {
      const now = await west.get(configMaps, { namespace, name: "settings" });
      expect(now.data).toEqual({ color: "red" });
      expect(now.metadata.labels).toMatchObject({ b: "2" });
      expect(now.metadata.labels).not.toHaveProperty("a");
      expect(now.metadata.uid).toBe(before.metadata.uid);
    });
    // Changes beside the content of an immutable object are made in place.
    const fixed = await west.get(configMaps, { namespace, name: "fixed" });
    await host.patch(
      configMaps,
      { namespace, name: "fixed" },
      { type: "merge", body: { metadata: { labels: { b: "2" } } } },
    );
    await eventuallyPasses(async () => {
      const now = await west.get(configMaps, { namespace, name: "fixed" });
      expect(now).toMatchObject({ data: { a: "b" }, immutable: true, metadata: { uid: fixed.metadata.uid } });
      expect(now.metadata.labels).toMatchObject({ b: "2" });
    });
    await host.delete(secrets, { namespace, name: "login" });
    await host.create(secrets, object("Secret", "login", { type: "example.com/other", data: { a: "Yw==" } }));
    const source = await host.get(secrets, { namespace, name: "login" });
    await eventuallyPasses(async () => {
      const now = await west.get(secrets, { namespace, name: "login" });
      expect(now).toMatchObject({ type: "example.com/other", data: { a: "Yw==" } });
      expect(ownerOf(now)?.uid).toBe(source.metadata.uid);
    }, patient);
  });

  test("is corrected when its copy is changed in the member, and copied again with an event when that is deleted", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    await run(user("web"));
    const ref = { namespace, name: "settings" };
    const patch = JSON.stringify({ data: { color: "green", extra: "1" } });
    await kubectl(memberCluster("west"), ["patch", "configmap/settings", "-n", namespace, "--patch", patch]);
    await eventuallyPasses(async () => expect((await west.get(configMaps, ref)).data).toEqual({ color: "blue" }));
    await west.patch(configMaps, ref, { type: "merge", body: { metadata: { labels: { theirs: "1" } } } });
    for (let times = 0; times < 2; times += 1) {
      const { uid } = (await eventually(() => found(west, configMaps, "settings"), patient)).metadata;
      await west.delete(configMaps, ref, { uid });
      await saysOn("settings", "west: another client there deleted ConfigMap settings, and it was made again");
    }
    const { uid } = (await eventually(() => found(west, configMaps, "settings"), patient)).metadata;
    expect(uid).toBeDefined();
    const { items } = await host.list(events, { namespace });
    expect(items.filter(({ reason }) => reason === "CopyDeleted")).toHaveLength(1);
  });

  test("is left as it is for ten minutes when a manager of the member keeps changing its copy, whom an event names", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    await run(user("web"));
    const ref = { namespace, name: "settings" };
    const isTold = async (): Promise<boolean> => {
      const { items } = await host.list(events, { namespace });
      return items.some(
        ({ reason, message }) =>
          reason === "CopyContested" && message?.includes("tuner keeps changing ConfigMap settings"),
      );
    };
    let color = 0;
    await eventually(
      async () => {
        color += 1;
        const body = { data: { color: `color-${color}` } };
        await west.patch(configMaps, ref, { type: "merge", body }, { fieldManager: "tuner" });
        return await isTold();
      },
      { ...patient, intervalMs: 1_000, what: "the event" },
    );
    const body = { data: { color: "theirs" } };
    await west.patch(configMaps, ref, { type: "merge", body }, { fieldManager: "tuner" });
    // Another version is tried at once.
    await host.patch(configMaps, ref, { type: "merge", body: { data: { color: "red" } } });
    await eventuallyPasses(async () => expect((await west.get(configMaps, ref)).data).toEqual({ color: "red" }));
  });

  test("leaves alone what a controller of the member derives from the copy, with labels and annotations of it", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    await run(user("web"));
    const { labels, annotations } = (await west.get(configMaps, { namespace, name: "settings" })).metadata;
    const derived = object("ConfigMap", "derived", { data: { color: "own" } }, { labels, annotations });
    const { uid } = (await west.create(configMaps, derived)).metadata;
    await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
    const of = namespace;
    copyGoesLater(async () => {
      const there = await west.find(configMaps, { namespace: of, name: "derived" });
      expect(there).toMatchObject({ metadata: { uid, labels }, data: { color: "own" } });
    });
  });

  test("stays for running pods when it is deleted on the host, and new pods wait", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    await run(user("one"));
    await host.delete(configMaps, { namespace, name: "settings" });
    await host.create(pods, user("two"));
    await saysOn("two", 'configmap "settings" not found');
    expect(await found(west, configMaps, "settings")).toBeDefined();
    await makeSettings(host, { color: "red" });
    await running("two");
    expect((await west.get(configMaps, { namespace, name: "settings" })).data).toEqual({ color: "red" });
  });

  test("is not copied over a foreign object of the member: the pod goes to another member", async () => {
    const { host, west, east } = clients();
    await makeSettings(host);
    await makeSettings(west, { color: "theirs" });
    await host.create(pods, user("stuck"));
    await saysOn("stuck", "west: ConfigMap settings, which the pod needs, is there already");
    const proxy = await run(user("web", settings, {}, { "legation.dev/clusters": "west,east" }));
    expect(proxy.spec?.nodeName).toBe("legation-east");
    expect((await west.get(configMaps, { namespace, name: "settings" })).data).toEqual({ color: "theirs" });
    expect((await east.get(configMaps, { namespace, name: "settings" })).data).toEqual({ color: "blue" });
  });

  test("is the member's own service account if there is one, and is copied once that is gone", async () => {
    const { host, west } = clients();
    await host.create(serviceAccounts, object("ServiceAccount", "worker"));
    const own = await west.create(serviceAccounts, object("ServiceAccount", "worker"));
    await run(user("web", [], { serviceAccountName: "worker" }));
    expect((await west.get(serviceAccounts, { namespace, name: "worker" })).metadata.resourceVersion).toBe(
      own.metadata.resourceVersion,
    );
    await west.delete(serviceAccounts, { namespace, name: "worker" }, { uid: own.metadata.uid });
    const spec = { serviceAccountName: "worker", containers: [{ name: "main", image: "work:1" }] };
    const tried = { apiVersion: "v1", kind: "Pod", metadata: { namespace, name: "tried" }, spec };
    // The member's API server may still know the account for a moment.
    await eventuallyPasses(() => expect(west.create(pods, tried, { dryRun: true })).rejects.toThrow("not found"));
    await run(user("web-2", [], { serviceAccountName: "worker" }));
    expect((await west.get(serviceAccounts, { namespace, name: "worker" })).metadata.labels).toHaveProperty(HOST_LABEL);
  });

  test("is not taken from what a member writes into a delegate", async () => {
    const { host, west } = clients();
    await host.create(secrets, object("Secret", "private", { data: { a: "Yg==" } }));
    await host.create(secrets, object("Secret", "used", { data: { a: "Yg==" } }));
    await run(user("web", [{ secretRef: { name: "used" } }]));
    const { metadata, spec } = await west.get(pods, { namespace, name: "web" });
    const containers = [{ name: "main", image: "work:1", envFrom: [{ secretRef: { name: "private" } }] }];
    const { nodeName = "" } = spec ?? {};
    const forged = {
      name: "forged",
      namespace,
      labels: metadata.labels ?? {},
      annotations: metadata.annotations ?? {},
    };
    await west.create(pods, { apiVersion: "v1", kind: "Pod", metadata: forged, spec: { containers, nodeName } });
    await host.patch(secrets, { namespace, name: "private" }, { type: "merge", body: { data: { b: "Yg==" } } });
    await host.patch(secrets, { namespace, name: "used" }, { type: "merge", body: { data: { b: "Yg==" } } });
    await eventuallyPasses(async () =>
      expect(Object.keys((await west.get(secrets, { namespace, name: "used" })).data ?? {})).toEqual(["a", "b"]),
    );
    expect(await found(west, secrets, "private")).toBeUndefined();
  });

  test("has its namespace created where a member lacks it", async () => {
    namespace = await freshNamespace(hostCluster(), { prefix: "needs", labels });
    await makeSettings(clients().host);
    await run(user("web"));
    expect(await otherWrites("west")).toEqual(["create configmaps: 404", "create namespaces", "create configmaps"]);
  });

  test("costs nothing for pods that use none", async () => {
    await run(user("web", []));
    expect(await otherWrites("west")).toEqual([]);
    const reads = await auditEvents(
      hostCluster(),
      ({ objectRef, user: { username } }) =>
        username.startsWith("system:serviceaccount:legation-system:") &&
        objectRef?.namespace === namespace &&
        objectRef.resource !== "pods" &&
        objectRef.resource !== "events",
      [namespace],
    );
    expect(reads).toEqual([]);
  });

  test("is gone from the member when its namespace is deleted on the host", async () => {
    const { host, west } = clients();
    await makeSettings(host);
    await run(user("web"));
    await kubectl(hostCluster(), ["delete", "namespace", namespace, "--wait=false"]);
    await podGone(west, namespace, "web", undefined, patient);
    copyGoesLater();
  });
});

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  const collection = "/configmaps";
  const points = [
    ["that creates the copy", "POST", collection],
    ["that creates the delegate", "POST", "/pods"],
    ["that changes the copy", "PATCH", `${collection}/settings`],
    ["that removes the copy", "DELETE", `${collection}/settings`],
  ] as const;
  test.each(points)("finishes after a restart: the write %s", async (_, method, path) => {
    const { legation, trap } = gated();
    const { host, west } = clients();
    let killed = false;
    trap("member", {
      when,
      catches: (write: Write) => write.method === method && write.path === `/api/v1/namespaces/${namespace}${path}`,
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    const follow = async (): Promise<void> => {
      await eventually(() => killed, { ...patient, what: "the write" });
      await legation.controller.start();
    };
    onTestFinished(deletePods);
    await makeSettings(host);
    const live = async (): Promise<void> => {
      await run(user("web"));
      await host.patch(
        configMaps,
        { namespace, name: "settings" },
        { type: "merge", body: { data: { color: "red" } } },
      );
      await eventuallyPasses(async () => {
        expect((await west.get(configMaps, { namespace, name: "settings" })).data).toEqual({ color: "red" });
      }, patient);
      await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
      if (method === "DELETE") await copyGoes();
      else copyGoesLater();
    };
    await Promise.all([live(), follow()]);
    await podGone(west, namespace, "web", undefined, patient);
  });
});

test("copies again what was being removed when a new pod comes", async () => {
  const { trap } = gated();
  const { host, west } = clients();
  onTestFinished(deletePods);
  await makeSettings(host);
  await run(user("one"));
  const before = await west.get(configMaps, { namespace, name: "settings" });
  let caught = false;
  trap("member", {
    // The response never comes, and the new pod comes before the controller has seen the deletion.
    when: "after",
    catches: ({ method, path }: Write) =>
      method === "DELETE" && path === `/api/v1/namespaces/${namespace}/configmaps/settings`,
    onCaught: async () => {
      await host.create(pods, user("two"));
      caught = true;
    },
  });
  await host.delete(pods, { namespace, name: "one" }, { gracePeriodSeconds: 0 });
  await eventually(() => caught, patient);
  await running("two");
  const after = await west.get(configMaps, { namespace, name: "settings" });
  expect(after.metadata.uid).not.toBe(before.metadata.uid);
});

test("removes the copies that the tests before this one used last", async () => {
  await Promise.all([...lingering.values()].map((ends) => ends()));
});
