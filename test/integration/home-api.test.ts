import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { HOME_API_LABEL, OWNER_ANNOTATION, RENEW_AT_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod, PodSpec, Secret, Stored, Volume } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { configMaps, events, nodes, pods, secrets } from "../../src/kube/resources.ts";
import { apiSecretName } from "../../src/pods/home-api.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { apiRequest } from "../support/clusters/api-request.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
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

// No container runs here, so nothing connects to it; real-nodes/home-api.test.ts does.
const SERVER = "https://203.0.113.7:6443";
const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";
const labels = { "legation.dev/delegation": "annotated" };
const patient = { timeoutMs: 90_000 };
type Members = "west" | "east";

/** Sets or removes the address under which pods of the member find the host. */
async function setHome(member: Members, homeAPI: { readonly server: string } | null): Promise<void> {
  await clients().host.patch(clusters, { name: member }, { type: "merge", body: { spec: { homeAPI } } });
}

beforeAll(async () => {
  await setHome("west", { server: SERVER });
  await setHome("east", null);
});
afterAll(() => setHome("west", null));
// A failed test may have left it killed.
beforeEach(() => gated().legation.controller.start());

interface Author {
  readonly member?: Members;
  readonly api?: "host" | "member" | "none";
  readonly spec?: Partial<PodSpec>;
}

/** A namespace of one test, and its pods. */
interface Home {
  readonly namespace: string;
  written(name: string, author?: Author): Pod;
  /** Creates a pod and waits until it runs; resolves to its proxy. */
  run(name: string, author?: Author): Promise<Stored<Pod>>;
  secretOf(client: ClusterClient, proxy: Stored<Pod>): Promise<Stored<Secret>>;
  /** Returns Legation's writes on objects other than pods. */
  others(cluster: "host" | Members): Promise<readonly string[]>;
}

async function makeHome(onFinished: typeof onTestFinished = onTestFinished): Promise<Home> {
  const { host } = clients();
  const everywhere = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const namespace = await freshNamespace(everywhere, { prefix: "home", labels, onFinished });
  const written = (name: string, { member, api, spec = {} }: Author = {}): Pod => {
    const annotations = {
      ...(member === undefined ? {} : { "legation.dev/clusters": member }),
      ...(api === undefined ? {} : { "legation.dev/api": api }),
    };
    return delegatedPod(namespace, name, { annotations, spec });
  };
  return {
    namespace,
    written,
    run: async (name, author = { member: "west" }) => {
      await host.create(pods, written(name, author));
      return podThat(host, namespace, name, inPhase("Running"), patient);
    },
    secretOf: (client, proxy) =>
      eventually(() => client.find(secrets, { namespace, name: apiSecretName(proxy.metadata.uid) }), patient),
    others: async (cluster) =>
      (await legationWrites(cluster === "host" ? hostCluster() : memberCluster(cluster), namespace)).others,
  };
}

function textOf({ data }: Secret, key: string): string {
  return Buffer.from(data?.[key] ?? "", "base64").toString("utf8");
}

interface Claims {
  readonly sub: string;
  readonly aud: readonly string[];
  readonly iat: number;
  readonly exp: number;
  readonly "kubernetes.io": { readonly node?: { readonly name: string; readonly uid?: string } };
}

function claimsOf(token: string): Claims {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
}

interface WhoAmI {
  readonly username: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Returns the user that the host's API server sees in the token; undefined if it accepts none. */
async function whoIs(token: string): Promise<WhoAmI | undefined> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const answer = await apiRequest({ ...hostCluster(), token }, "POST", path, { body });
  if (answer.status === 401) return undefined;
  expect(answer.status).toBe(201);
  return JSON.parse(answer.text).status.userInfo;
}

/** Returns the node that a TokenReview reports to policies and audit. */
async function reviewedNodes(token: string): Promise<readonly string[]> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } };
  const answer = await kubectl(hostCluster(), ["create", "-f", "-", "-o", "json"], { input: JSON.stringify(review) });
  return JSON.parse(answer).status.user.extra["authentication.kubernetes.io/node-name"] ?? [];
}

/** Expects that the token names the virtual node of west. */
async function expectNodeIn(token: string): Promise<void> {
  const node = await clients().host.get(nodes, { name: "legation-west" });
  expect(claimsOf(token)["kubernetes.io"].node).toEqual({ name: "legation-west", uid: node.metadata.uid });
  expect(await reviewedNodes(token)).toEqual(["legation-west"]);
}

function times(count: number, write: string): string[] {
  return Array.from({ length: count }, () => write);
}

function volumeNames({ spec }: Pod): string[] {
  return (spec?.volumes ?? []).map(({ name }) => name.replace(/-[a-z0-9]{5}$/, ""));
}

describe.concurrent("a pod that mounts a token", () => {
  test("costs one TokenRequest on the host and one Secret in its member, however it ends", async ({
    onTestFinished,
  }) => {
    const { namespace, run, others } = await makeHome(onTestFinished);
    const names = numbered("one", 10);
    await Promise.all(names.map((name) => run(name)));
    const expected = async (): Promise<void> => {
      expect(await others("host")).toEqual(times(10, "create serviceaccounts/token"));
      expect(await others("west")).toEqual(times(10, "create secrets"));
      expect(await others("east")).toEqual([]);
    };
    await eventuallyPasses(expected);
    await Promise.all(names.map((name) => clients().host.delete(pods, { namespace, name })));
    await eventuallyPasses(async () => expect(await podsOf(clients().host, namespace)).toEqual([]), patient);
    await eventuallyPasses(async () => {
      expect((await clients().west.list(secrets, { namespace })).items).toEqual([]);
    }, patient);
    await expected();
  });

  test("authenticates on the host by its Secret until it is gone there", async ({ onTestFinished }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    const proxy = await run("who");
    const secret = await secretOf(clients().west, proxy);
    expect(Object.keys(secret.data ?? {}).sort()).toEqual(["ca.crt", "token-0"]);
    expect(textOf(secret, "ca.crt").trim()).toBe(hostCluster().caData.trim());
    const token = textOf(secret, "token-0");
    expect(await whoIs(token)).toMatchObject({
      username: `system:serviceaccount:${namespace}:default`,
      extra: {
        "authentication.kubernetes.io/pod-name": ["who"],
        "authentication.kubernetes.io/pod-uid": [proxy.metadata.uid],
      },
    });
    expect(gated().legation.controller.log()).not.toContain(token);
    await clients().host.delete(pods, { namespace, name: "who" });
    await podGone(clients().host, namespace, "who");
    // API servers cache an authentication for ten seconds.
    await eventually(async () => (await whoIs(token)) === undefined, { ...patient, intervalMs: 1_000 });
  });

  test("has the identity of its own service account, not of its namespace's default one", async ({
    onTestFinished,
  }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    await kubectl(hostCluster(), ["create", "serviceaccount", "runner", "-n", namespace]);
    const proxy = await run("runner", { member: "west", spec: { serviceAccountName: "runner" } });
    const token = textOf(await secretOf(clients().west, proxy), "token-0");
    expect(await whoIs(token)).toMatchObject({ username: `system:serviceaccount:${namespace}:runner` });
  });

  test("has no token in a member that only claims to have the delegate", async ({ onTestFinished }) => {
    const { namespace, run, secretOf, others } = await makeHome(onTestFinished);
    onTestFinished(() => setHome("east", null));
    await setHome("east", { server: SERVER });
    const proxy = await run("claimed");
    await secretOf(clients().west, proxy);
    const { metadata, spec } = await clients().west.get(pods, { namespace, name: "claimed" });
    const { labels = {}, annotations = {} } = metadata;
    const { nodeName: _node, tolerations: _tolerations, priority: _priority, ...rest } = spec ?? { containers: [] };
    const claim = { namespace, name: "claimed", labels, annotations };
    await clients().east.create(pods, { apiVersion: "v1", kind: "Pod", metadata: claim, spec: rest });
    // Legation sees it, and deletes a second delegate of one proxy.
    await podGone(clients().east, namespace, "claimed");
    expect((await clients().east.list(secrets, { namespace })).items).toEqual([]);
    expect(await others("east")).not.toContain("create secrets");
    expect(await others("host")).toEqual(["create serviceaccounts/token"]);
  });

  test("has the tokens of its author's own volumes, with their audience, lifetime and paths", async ({
    onTestFinished,
  }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    const vault: Volume = {
      name: "vault",
      projected: {
        sources: [{ serviceAccountToken: { audience: "vault", expirationSeconds: 900, path: "to/vault" } }],
      },
    };
    const container = { name: "main", image: "work:1", volumeMounts: [{ name: "vault", mountPath: "/vault" }] };
    const spec = { automountServiceAccountToken: false, volumes: [vault], containers: [container] };
    const proxy = await run("vault", { member: "west", spec });
    const claims = claimsOf(textOf(await secretOf(clients().west, proxy), "token-0"));
    expect(claims).toMatchObject({ aud: ["vault"], sub: `system:serviceaccount:${namespace}:default` });
    expect(claims.exp - claims.iat).toBe(900);
    const delegate = await clients().west.get(pods, { namespace, name: "vault" });
    const item = { key: "token-0", path: "to/vault" };
    expect(delegate.spec?.volumes).toEqual([
      {
        name: "vault",
        projected: {
          defaultMode: 420,
          sources: [{ secret: { name: apiSecretName(proxy.metadata.uid), items: [item] } }],
        },
      },
    ]);
  });

  test("has its token renewed in the same Secret, by one write, when the renewal is due", async ({
    onTestFinished,
  }) => {
    const { namespace, run, secretOf, others } = await makeHome(onTestFinished);
    const proxy = await run("renewed");
    const before = await secretOf(clients().west, proxy);
    const renewAt = Date.parse(before.metadata.annotations?.[RENEW_AT_ANNOTATION] ?? "");
    // A pod's own volume asks for 3607 s; renewed at 80 % of that, up to a tenth earlier.
    const ageMs = renewAt - Date.parse(before.metadata.creationTimestamp ?? "");
    expect(ageMs / 1000).toBeGreaterThan(3607 * 0.71);
    expect(ageMs / 1000).toBeLessThan(3607 * 0.81);
    // Makes the renewal of this one Secret due.
    const body = { metadata: { annotations: { [RENEW_AT_ANNOTATION]: new Date().toISOString() } } };
    await clients().west.patch(secrets, { namespace, name: before.metadata.name }, { type: "merge", body });
    const after = await eventually(async () => {
      const now = await secretOf(clients().west, proxy);
      return textOf(now, "token-0") !== textOf(before, "token-0") && now;
    });
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(Date.parse(after.metadata.annotations?.[RENEW_AT_ANNOTATION] ?? "")).toBeGreaterThan(
      Date.now() + 40 * 60_000,
    );
    expect(await whoIs(textOf(after, "token-0"))).toMatchObject({
      username: `system:serviceaccount:${namespace}:default`,
    });
    await eventuallyPasses(async () => {
      expect(await others("host")).toEqual(times(2, "create serviceaccounts/token"));
      expect(await others("west")).toEqual(["create secrets", "patch secrets"]);
    });
  });

  // real-nodes/home-api.test.ts shows a container that waits and then gets it.
  test("has an event with the reason when its member refuses its Secret", async ({ onTestFinished }) => {
    const { namespace, run } = await makeHome(onTestFinished);
    const quota = ["quota", "none", "-n", namespace];
    await kubectl(memberCluster("west"), ["create", ...quota, "--hard=count/secrets=0"]);
    await eventually(async () => {
      const used = ["get", ...quota, "-o", "jsonpath={.status.hard}"];
      return (await kubectl(memberCluster("west"), used)) !== "";
    });
    const proxy = await run("quota");
    await eventually(async () => {
      const { items } = await clients().host.list(events, { namespace });
      return items.some(
        ({ reason, message, involvedObject }) =>
          reason === "NoToken" && message?.includes("exceeded quota") && involvedObject.uid === proxy.metadata.uid,
      );
    });
  });

  test("has its Secret created again when it was deleted", async ({ onTestFinished }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    const proxy = await run("again");
    const { metadata } = await secretOf(clients().west, proxy);
    await clients().west.delete(secrets, { namespace, name: metadata.name });
    await eventually(async () => (await secretOf(clients().west, proxy)).metadata.uid !== metadata.uid);
  });

  test("has its Secret renewed even after the Secret's labels were removed", async ({ onTestFinished }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    const { west } = clients();
    const proxy = await run("unlabelled");
    const { metadata } = await secretOf(west, proxy);
    const body = { metadata: { labels: { [HOME_API_LABEL]: null } }, data: { "token-0": null } };
    await west.patch(secrets, { namespace, name: metadata.name }, { type: "merge", body });
    await eventuallyPasses(async () => {
      const kept = await secretOf(west, proxy);
      expect(kept.metadata.labels).toEqual(metadata.labels);
      expect(kept.metadata.uid).toBe(metadata.uid);
      expect(Object.keys(kept.data ?? {})).toContain("token-0");
    });
  });

  test("has the host's certificate authority alone where its author mounts that, with a token from elsewhere", async () => {
    const { run, secretOf } = await makeHome();
    const volume: Volume = { name: "authority", configMap: { name: "kube-root-ca.crt" } };
    const container = { name: "main", image: "work:1", volumeMounts: [{ name: "authority", mountPath: "/host" }] };
    const spec = { automountServiceAccountToken: false, containers: [container], volumes: [volume] };
    const proxy = await run("authority", { member: "west", api: "host", spec });
    const secret = await secretOf(clients().west, proxy);
    expect(Object.keys(secret.data ?? {})).toEqual(["ca.crt"]);
    expect(textOf(secret, "ca.crt").trim()).toBe(hostCluster().caData.trim());
  });

  test("does not overwrite a foreign Secret with the name of its own, and has an event", async ({ onTestFinished }) => {
    const { namespace, run, secretOf } = await makeHome(onTestFinished);
    const { host, west } = clients();
    const proxy = await run("taken");
    const { metadata } = await secretOf(west, proxy);
    const annotations = { [OWNER_ANNOTATION]: null };
    const body = { metadata: { labels: { [HOME_API_LABEL]: null }, annotations }, data: { "token-0": "b3RoZXI=" } };
    await west.patch(secrets, { namespace, name: metadata.name }, { type: "merge", body });
    const toldOf = `Secret ${metadata.name} is there already and was not made by Legation for this pod; delete it there`;
    await eventuallyPasses(async () => {
      const { items } = await host.list(events, { namespace, fieldSelector: "reason=NoToken" });
      expect(items.map(({ message }) => message)).toEqual([`the pod's token cannot be had: west: ${toldOf}`]);
    });
    expect((await secretOf(west, proxy)).data?.["token-0"]).toBe("b3RoZXI=");
    await west.delete(secrets, { namespace, name: metadata.name });
    // A refused write is repeated after half a minute.
    await eventually(async () => (await secretOf(west, proxy)).metadata.uid !== metadata.uid, patient);
  });
});

describe("a token of a bound pod", () => {
  test("names the virtual node for each pod of a Deployment of 12", async () => {
    const { namespace, written, secretOf, others } = await makeHome();
    const { metadata: { annotations = {} } = {}, spec } = written("unused", { member: "west" });
    const labels = { app: "twelve" };
    const template = { metadata: { labels, annotations }, spec: { ...spec, restartPolicy: "Always" } };
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "twelve", namespace },
      spec: { replicas: 12, selector: { matchLabels: labels }, template },
    };
    await kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(deployment) });
    const proxies = await eventually(async () => {
      const found = await podsOf(clients().host, namespace);
      return found.length === 12 && found.every(inPhase("Running")) && found;
    }, patient);
    for (const proxy of proxies) await expectNodeIn(textOf(await secretOf(clients().west, proxy), "token-0"));
    expect(await others("host")).toEqual(times(12, "create serviceaccounts/token"));
  });

  test("names the virtual node even if the Binding comes long after the delegate", async () => {
    const { namespace, written, secretOf, others } = await makeHome();
    const binding = `/api/v1/namespaces/${namespace}/pods/late/binding`;
    let held = false;
    onTestFinished(() => gated().release());
    gated().trap("host", {
      when: "late",
      catches: ({ method, path }) => method === "POST" && path === binding,
      onCaught: async () => {
        await podThat(clients().west, namespace, "late", inPhase("Running"), patient);
        held = true;
      },
    });
    await clients().host.create(pods, written("late", { member: "west" }));
    const proxy = await podThat(clients().host, namespace, "late", inPhase("Running"), patient);
    expect(held).toBe(true);
    await expectNodeIn(textOf(await secretOf(clients().west, proxy), "token-0"));
    expect(await others("host")).toEqual(["create serviceaccounts/token"]);
  });
});

describe("a pod without a token of the host", () => {
  const cases = [
    ["automountServiceAccountToken: false", { spec: { automountServiceAccountToken: false } }, [], false],
    ["legation.dev/api: none", { api: "none" }, [], false],
    ["legation.dev/api: member", { api: "member" }, ["kube-api-access"], undefined],
  ] as const;
  test.each(cases)("costs no further write with %s", async (_, author, volumes, automount) => {
    const { namespace, run, others } = await makeHome();
    await run("plain", { member: "west", ...author });
    const delegate = await clients().west.get(pods, { namespace, name: "plain" });
    expect(volumeNames(delegate)).toEqual(volumes);
    expect(delegate.spec?.automountServiceAccountToken).toBe(automount);
    expect(await Promise.all([others("host"), others("west")])).toEqual([[], []]);
  });

  test("takes legation.dev/api from its namespace, and from its workload's template", async () => {
    const { namespace, run } = await makeHome();
    await kubectl(hostCluster(), ["annotate", "namespace", namespace, "legation.dev/api=none"]);
    await eventuallyPasses(async () => {
      const name = `default-${Date.now()}`;
      await run(name);
      expect(volumeNames(await clients().west.get(pods, { namespace, name }))).toEqual([]);
    });
    const metadata = {
      name: "work",
      namespace,
      annotations: { "legation.dev/api": "member", "legation.dev/clusters": "west" },
    };
    const template = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "work:1" }] } };
    const job = { apiVersion: "batch/v1", kind: "Job", metadata, spec: { template } };
    await kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(job) });
    await eventuallyPasses(async () => {
      const { items } = await clients().west.list(pods, { namespace, labelSelector: "job-name=work" });
      expect(items.map(volumeNames)).toEqual([["kube-api-access"]]);
    });
  });

  test("is refused with an unknown value", async () => {
    const { namespace } = await makeHome();
    const refused = clients().host.create(
      pods,
      delegatedPod(namespace, "bad", { annotations: { "legation.dev/api": "home" } }),
    );
    await expect(refused).rejects.toThrow('"home" is no API server; write "host", "member" or "none"');
  });
});

describe("a member without a known address of the host", () => {
  test("runs pods without a token, and one event per namespace reports it", async () => {
    const { namespace, run, others } = await makeHome();
    const names = numbered("some", 3);
    await Promise.all(names.map((name) => run(name, { member: "east" })));
    const delegates = await podsOf(clients().east, namespace);
    expect(delegates.map(volumeNames)).toEqual([[], [], []]);
    expect(delegates.map(({ spec }) => spec?.automountServiceAccountToken)).toEqual([false, false, false]);
    const said = await eventually(async () => {
      const { items } = await clients().host.list(events, { namespace });
      const found = items.filter(({ reason }) => reason === "NoHomeAPI");
      return found.length > 0 && found;
    });
    expect(said).toHaveLength(1);
    expect(said[0]?.message).toContain("spec.homeAPI.server of Cluster east");
    expect(await others("east")).toEqual([]);
    expect(await others("host")).not.toContain("create serviceaccounts/token");
  });

  test("gets no pod that needs the host's token, tells the pod what to set, and gets it once that is set", async () => {
    const { namespace, written, secretOf } = await makeHome();
    await clients().host.create(pods, written("must", { member: "east", api: "host" }));
    const waiting = await podThat(clients().host, namespace, "must", (pod) => whyNotPlaced(pod) !== undefined);
    expect(whyNotPlaced(waiting)?.message).toContain("spec.homeAPI.server of Cluster east");
    onTestFinished(() => setHome("east", null));
    await setHome("east", { server: SERVER });
    const proxy = await podThat(clients().host, namespace, "must", inPhase("Running"), patient);
    const secret = await secretOf(clients().east, proxy);
    expect(await whoIs(textOf(secret, "token-0"))).toBeDefined();
  });

  test("uses the address that kubeadm has published, from the controller's next start on", async () => {
    const { namespace, run } = await makeHome();
    const kubeconfig = JSON.stringify({ clusters: [{ name: "", cluster: { server: SERVER } }] });
    const metadata = { namespace: "kube-public", name: "cluster-info" };
    await clients().host.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { kubeconfig } });
    const { controller } = gated().legation;
    onTestFinished(async () => {
      await clients().host.delete(configMaps, metadata);
      await controller.stop();
      await controller.start();
    });
    await controller.stop();
    await controller.start();
    await run("published", { member: "east", api: "host" });
    const { spec } = await clients().east.get(pods, { namespace, name: "published" });
    expect(spec?.containers[0]?.env?.[0]).toEqual({ name: "KUBERNETES_SERVICE_HOST", value: "203.0.113.7" });
  });

  test("leaves a pod that needs the host's token to another member", async () => {
    const { run } = await makeHome();
    const proxy = await run("elsewhere", { api: "host" });
    expect(proxy.spec?.nodeName).toBe("legation-west");
  });

  test.each(["http://10.0.0.1", "https://10.0.0.1/path", "10.0.0.1:6443", "https://user@host"])(
    "refuses %s as address",
    async (server) => {
      await expect(setHome("east", { server })).rejects.toThrow("must be https://HOST or https://HOST:PORT");
    },
  );
});

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  const token = ({ method, path }: Write, namespace: string): boolean =>
    method === "POST" && path === `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
  const secret = ({ method, path }: Write, namespace: string): boolean =>
    method === "POST" && path === `/api/v1/namespaces/${namespace}/secrets`;
  test.each([
    ["that requests a token", "host", token],
    ["that creates the Secret", "member", secret],
  ] as const)("gives the pod its token after a restart: the write %s", async (_, where, catches) => {
    const { namespace, written, secretOf } = await makeHome();
    const { legation, trap } = gated();
    let killed = false;
    trap(where, {
      when,
      catches: (write) => catches(write, namespace),
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    await clients().host.create(pods, written("one", { member: "west" }));
    await eventually(() => killed, { ...patient, what: "the write" });
    await legation.controller.start();
    const proxy = await podThat(clients().host, namespace, "one", inPhase("Running"), patient);
    const found = await secretOf(clients().west, proxy);
    expect(await whoIs(textOf(found, "token-0"))).toBeDefined();
    const { metadata } = await clients().west.get(pods, { namespace, name: "one" });
    expect(found.metadata.ownerReferences).toEqual([{ apiVersion: "v1", kind: "Pod", name: "one", uid: metadata.uid }]);
    expect((await clients().west.list(secrets, { namespace })).items).toHaveLength(1);
  });
});

test("renews the tokens of one member while another hangs", async () => {
  const { namespace, run, secretOf } = await makeHome();
  onTestFinished(() => setHome("east", null));
  await setHome("east", { server: SERVER });
  const due = async (member: Members): Promise<() => Promise<boolean>> => {
    const proxy = await run(member, { member, api: "host" });
    const { metadata } = await secretOf(clients()[member], proxy);
    const body = { metadata: { annotations: { [RENEW_AT_ANNOTATION]: new Date(Date.now() + 5_000).toISOString() } } };
    await clients()[member].patch(secrets, { namespace, name: metadata.name }, { type: "merge", body });
    return async () => {
      const now = await secretOf(clients()[member], proxy);
      return Date.parse(now.metadata.annotations?.[RENEW_AT_ANNOTATION] ?? "") > Date.now() + 60_000;
    };
  };
  const west = memberCluster("west");
  onTestFinished(() => west.mend());
  const renewedWest = await due("west");
  const renewedEast = await due("east");
  await west.apiServer.freeze();
  await eventually(renewedEast, { timeoutMs: 20_000, what: "new token in east" });
  await west.apiServer.thaw();
  await eventually(renewedWest, { ...patient, what: "new token in west" });
});

describe("a token that Legation's controller requests", () => {
  const ask = (account: string, ...args: string[]): Promise<string> =>
    kubectl(hostCluster(), ["create", "token", account, `--as=${CONTROLLER}`, ...args]);
  const boundTo = (kind: string, name: string, uid: string): string[] => [
    `--bound-object-kind=${kind}`,
    `--bound-object-name=${name}`,
    `--bound-object-uid=${uid}`,
  ];

  test("is refused if it is not bound to a pod", async () => {
    const { namespace } = await makeHome();
    await expect(ask("default", "-n", namespace)).rejects.toThrow("no token that is not bound to a pod");
    const secret = boundTo("Secret", "any", "uid");
    await expect(ask("default", "-n", namespace, ...secret)).rejects.toThrow("no token that is not bound to a pod");
  });

  test("is refused for a service account in a namespace that is not opted in", async () => {
    const pod = boundTo("Pod", "any", "uid");
    await expect(ask("default", "-n", "kube-system", ...pod)).rejects.toThrow("namespace kube-system is not opted in");
  });

  test("is refused for a service account that the pod does not name", async () => {
    const { namespace, run } = await makeHome();
    const { metadata } = await run("mine", { member: "west", api: "none" });
    await kubectl(hostCluster(), ["create", "serviceaccount", "other", "-n", namespace]);
    const pod = boundTo("Pod", "mine", metadata.uid);
    await expect(ask("other", "-n", namespace, ...pod)).rejects.toThrow("different serviceaccount name");
    await expect(ask("default", "-n", namespace, ...pod)).resolves.toMatch(/^ey/);
  });

  test("appears in no audit log, event or log of the controller", async () => {
    const { namespace, run, secretOf } = await makeHome();
    const proxy = await run("quiet");
    const token = textOf(await secretOf(clients().west, proxy), "token-0");
    const { items } = await clients().host.list(events, { namespace });
    expect(JSON.stringify(items)).not.toContain(token);
    expect(gated().legation.controller.log()).not.toContain(token);
    // The raw lines, with fields that the tests do not parse.
    const lines = readFileSync(hostCluster().auditLog, "utf8").split("\n");
    const own = lines.filter((line) => line.includes(namespace));
    expect(own.some((line) => line.includes('"subresource":"token"'))).toBe(true);
    expect(own.filter((line) => line.includes(token))).toEqual([]);
  });
});
