import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { DELEGATE_UID_ANNOTATION, HOST_LABEL, OWNER_ANNOTATION, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import type { KubeEvent, Pod, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { events, namespaces, pods, secrets } from "../../src/kube/resources.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { answerJson, type Fault, FaultServer, line } from "../support/fault-server/fault-server.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podOf, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

// Values that must not appear anywhere else.
const SECRET_VALUE = "sesame-2f7d1c";
const LIAR_TOKEN = "liars-token-8c41";

// First, so that the file's objects are removed after Legation has stopped.
const clients = useClients();
const legation = useLegation();

let namespace: string;
let hostId: string;
beforeAll(async () => {
  hostId = (await clients().host.get(namespaces, { name: "kube-system" })).metadata.uid;
});
// Per attempt: objects of an earlier attempt are in another namespace.
beforeEach(async () => {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace(all, { prefix: "hostile", labels });
  await clients().host.create(secrets, {
    metadata: { namespace, name: "door" },
    data: { key: Buffer.from(SECRET_VALUE).toString("base64") },
  });
});

/** Creates a pod for one member and waits until it runs. */
async function run(name: string, member: "west" | "east"): Promise<Stored<Pod>> {
  const annotations = { "legation.dev/clusters": member };
  await clients().host.create(pods, delegatedPod(namespace, name, { annotations }));
  return podThat(clients().host, namespace, name, inPhase("Running"));
}

interface Forgery {
  readonly name: string;
  readonly in?: string;
  readonly owner: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly finalizers?: string[];
  readonly volumes?: NonNullable<Pod["spec"]>["volumes"];
}

/** Creates a pod in west with the marks of a delegate of this host. */
async function forge({
  name,
  in: where = namespace,
  owner,
  finalizers = [],
  volumes = [],
}: Forgery): Promise<Stored<Pod>> {
  const { west } = clients();
  const annotations = { [OWNER_ANNOTATION]: JSON.stringify({ cluster: "host", ...owner }) };
  onTestFinished(async () => {
    const body = { metadata: { finalizers: null } };
    await west.patch(pods, { namespace: where, name }, { type: "merge", body }).catch(() => undefined);
    await west.delete(pods, { namespace: where, name }, { gracePeriodSeconds: 0 }).catch(() => undefined);
  });
  return west.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: where, name, labels: { [HOST_LABEL]: hostId }, annotations, finalizers },
    spec: { containers: [{ name: "main", image: "forged:1" }], volumes, automountServiceAccountToken: false },
  });
}

describe("a member that forges delegates", () => {
  test("delays no pod of that name in another member, even if it blocks the deletion of the forged one", async () => {
    const { host, east } = clients();
    const proxy = await run("wanted", "east");
    const owner = { namespace, name: "wanted", uid: "00000000-0000-0000-0000-000000000000" };
    const forged = await forge({ name: "wanted", owner, finalizers: ["example.com/kept"] });
    await podThat(clients().west, namespace, "wanted", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await host.patch(
      pods,
      { namespace, name: "wanted" },
      { type: "merge", body: { metadata: { labels: { tier: "gold" } } } },
    );
    await podThat(east, namespace, "wanted", ({ metadata }) => metadata.labels?.tier === "gold", { timeoutMs: 60_000 });
    await host.delete(pods, { namespace, name: "wanted" }, { gracePeriodSeconds: 1 });
    await podGone(host, namespace, "wanted", proxy.metadata.uid);
    expect((await podOf(clients().west, namespace, "wanted"))?.metadata.uid).toBe(forged.metadata.uid);
  });

  test("cannot write the status of a proxy in another member, even if it knows the uid", async () => {
    const { host, west } = clients();
    const proxy = await run("mine", "east");
    const { uid } = proxy.metadata;
    await forge({ name: "mine", owner: { namespace, name: "mine", uid }, finalizers: ["example.com/kept"] });
    await west.patch(
      pods,
      { namespace, name: "mine" },
      { type: "merge", body: { status: { phase: "Failed", message: "forged" } } },
      { subresource: "status" },
    );
    await sleep(1_500);
    const after = await host.get(pods, { namespace, name: "mine" });
    expect(after.status?.phase).toBe("Running");
    expect(after.status?.message).toBeUndefined();
    expect(after.metadata.annotations?.[DELEGATE_UID_ANNOTATION]).toBe(
      proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION],
    );
  });

  test("gets no Secret of a proxy in another member, even if it knows the uid and the Secret changes", async () => {
    const { host, west, east } = clients();
    const volumes = [{ name: "door", secret: { secretName: "door" } }];
    const annotations = { "legation.dev/clusters": "east" };
    await host.create(pods, delegatedPod(namespace, "keeper", { annotations, spec: { volumes } }));
    const proxy = await podThat(host, namespace, "keeper", inPhase("Running"));
    const owner = { namespace, name: "keeper", uid: proxy.metadata.uid };
    await forge({ name: "keeper", owner, volumes, finalizers: ["example.com/kept"] });
    await podThat(west, namespace, "keeper", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    const data = { key: Buffer.from("another").toString("base64") };
    await host.patch(secrets, { namespace, name: "door" }, { type: "merge", body: { data } });
    // A single event causes both copies.
    await eventuallyPasses(async () => {
      expect((await east.get(secrets, { namespace, name: "door" })).data).toEqual(data);
    });
    await sleep(1_000);
    expect(await west.find(secrets, { namespace, name: "door" })).toBeUndefined();
  });

  test("gets no event into a namespace of the host, and no Secret out of it", async () => {
    const { host, west } = clients();
    const proxy = await run("real", "west");
    const elsewhere = { namespace: "kube-system", name: "kube-dns", uid: "11111111-1111-1111-1111-111111111111" };
    const volumes = [{ name: "door", secret: { secretName: "door" } }];
    const forged = await forge({ name: "thief", owner: elsewhere, volumes, finalizers: ["example.com/kept"] });
    const told = (about: Stored<Pod>, name: string): Promise<Stored<KubeEvent>> =>
      west.create(events, {
        metadata: { namespace, name },
        involvedObject: { kind: "Pod", namespace, name: about.metadata.name, uid: about.metadata.uid },
        type: "Warning",
        reason: "Forged",
        message: "look here",
        lastTimestamp: new Date().toISOString(),
      });
    await told(forged, "about-the-forged");
    const delegate = await west.get(pods, { namespace, name: "real" });
    await told(delegate, "about-the-real");
    // Both events come by one connection, in this order.
    const forgedOn = async (where: string): Promise<number> =>
      (await host.list(events, { namespace: where, fieldSelector: "reason=Forged" })).items.length;
    await eventuallyPasses(async () => expect(await forgedOn(namespace)).toBe(1));
    expect(await forgedOn("kube-system")).toBe(0);
    expect(await west.find(secrets, { namespace, name: "door" })).toBeUndefined();
    expect(proxy.metadata.name).toBe("real");
  });
});

describe("a member whose API server lies", () => {
  const name = "liar";
  let server: FaultServer;
  /** The server's responses to lists and watches of pods. */
  let lie: Fault = () => false;

  beforeAll(async () => {
    server = await FaultServer.start();
    server.always = (request, response) => {
      const { path, kind } = request;
      if (path.startsWith("/readyz")) {
        response.end("ok");
        return true;
      }
      if (path === "/version") {
        answerJson(response, 200, { gitVersion: "v1.36.0" });
        return true;
      }
      if (path === "/api/v1/namespaces/kube-system") {
        answerJson(response, 200, { metadata: { name: "kube-system", uid: "liar", resourceVersion: "1" } });
        return true;
      }
      if (path.endsWith("/pods")) return lie(request, response);
      if (kind === "watch") {
        response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
        return true;
      }
      answerJson(response, 200, { kind: "List", metadata: { resourceVersion: "1" }, items: [] });
      return true;
    };
    await joinAs(name, { server: server.url, user: { token: LIAR_TOKEN } });
    afterFile(async () => server.stop());
  });

  const nonsense = { metadata: { name: "p", namespace: "x", uid: "u", resourceVersion: "2" }, spec: { containers: 5 } };
  const list = (items: unknown): object => ({ kind: "PodList", metadata: { resourceVersion: "1" }, items });
  const watchOf =
    (text: string): Fault =>
    ({ kind }, response) => {
      if (kind !== "watch") answerJson(response, 200, list([]));
      else response.writeHead(200, { "content-type": "application/json" }).write(text);
      return true;
    };
  const flood: Fault = ({ kind }, response) => {
    if (kind !== "watch") {
      answerJson(response, 200, list([]));
      return true;
    }
    const chunk = Buffer.alloc(2 ** 20, "x");
    response.writeHead(200, { "content-type": "application/json" });
    const write = (): void => {
      if (!response.destroyed) response.write(chunk, () => setImmediate(write));
    };
    write();
    return true;
  };
  const answers =
    (body: object): Fault =>
    (_request, response) => {
      answerJson(response, 200, body);
      return true;
    };

  test.each<[string, Fault]>([
    ["lists of objects that are no pods", answers(list([nonsense]))],
    ["a list that is no list", answers(list("none"))],
    ["lists without end", answers({ ...list([]), metadata: { resourceVersion: "1", continue: "again" } })],
    ["a watch of objects that are no pods", watchOf(line("ADDED", nonsense))],
    ["a watch that is no JSON", watchOf("]{\n".repeat(100))],
    ["a watch with one endless event", flood],
  ])("disturbs no other member and fills no memory with %s", async (_what, fault) => {
    const { host } = clients();
    lie = fault;
    server.cutConnections();
    const pid = legation().controller.pid;
    const asked = server.requests.length;
    await eventually(() => server.requests.slice(asked).some(({ path }) => path.endsWith("/pods")));
    const pod = `beside-${asked}`;
    await run(pod, "west");
    await host.delete(pods, { namespace, name: pod }, { gracePeriodSeconds: 0 });
    expect(legation().controller.pid).toBe(pid);
    expect(memoryOf(pid)).toBeLessThan(600);
  });

  test("fills no memory with an event that arrives byte by byte", async () => {
    const chunks = 2 ** 16;
    // Each byte is an HTTP chunk, and is read as one.
    const text = "1\r\nx\r\n".repeat(chunks);
    let taken = 0;
    lie = ({ kind }, response) => {
      const { socket } = response;
      if (kind !== "watch" || socket === null) {
        answerJson(response, 200, list([]));
        return true;
      }
      taken = 0;
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
      const write = (): void => {
        if (socket.destroyed) return;
        taken += chunks;
        socket.write(text, () => setImmediate(write));
      };
      write();
      return true;
    };
    server.cutConnections();
    const pid = legation().controller.pid;
    await eventually(() => taken > 8 * 2 ** 20, { timeoutMs: 120_000 });
    expect(legation().controller.pid).toBe(pid);
    expect(memoryOf(pid)).toBeLessThan(600);
  });
});

test("refuses a kubeconfig with an exec plugin, and runs nothing", async () => {
  const trace = join(tmpdir(), `legation-ran-${Date.now()}`);
  onTestFinished(() => rmSync(trace, { force: true }));
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "touch",
    args: [trace],
    interactiveMode: "Never",
  };
  const name = `runner-${randomBytes(4).toString("hex")}`;
  await joinAs(name, { server: hostCluster().server, user: { exec } });
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(clusters, { name });
    const message = status?.conditions?.find(({ type }) => type === "Ready")?.message;
    expect(message).toContain("a stored kubeconfig must not run a program here");
  });
  expect(existsSync(trace)).toBe(false);
});

describe("secrets", () => {
  beforeEach(async () => {
    const annotations = { "legation.dev/clusters": "west" };
    const volumes = [{ name: "door", secret: { secretName: "door" } }];
    const spec = { volumes, containers: [{ name: "main", image: "work:1" }] };
    await clients().host.create(pods, delegatedPod(namespace, "opens", { annotations, spec }));
    await podThat(clients().host, namespace, "opens", inPhase("Running"));
  });

  test("of members, pods and Legation itself appear in no log, event, status or error", async () => {
    const { host, west, east } = clients();
    const { items } = await host.list(secrets, { namespace: SYSTEM_NAMESPACE });
    const kept = items
      .flatMap(({ data = {} }) => Object.values(data))
      .map((value) => Buffer.from(value, "base64").toString("utf8"));
    const tokens = kept.flatMap((text) => text.match(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g) ?? []);
    const keys = kept.flatMap((text) => /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+(\S{40})/.exec(text)?.[1] ?? []);
    const own = [...new Set([...tokens.map((token) => token.slice(-40)), ...keys])];
    expect(own.length).toBeGreaterThan(2);
    const forbidden = [SECRET_VALUE, Buffer.from(SECRET_VALUE).toString("base64"), LIAR_TOKEN, ...own];
    const { controller, webhook } = legation();
    const shown: Record<string, string> = {
      "log of the controller": controller.log(),
      "log of the webhook": webhook.log(),
      Clusters: JSON.stringify((await host.list(clusters)).items),
      "events of the host": JSON.stringify((await host.list(events, { limit: 5_000 })).items),
      "events of west": JSON.stringify((await west.list(events, { limit: 5_000 })).items),
      "events of east": JSON.stringify((await east.list(events, { limit: 5_000 })).items),
      "pods of the host": JSON.stringify((await host.list(pods, { limit: 5_000 })).items),
      "audit log of the host": readFileSync(hostCluster().auditLog, "utf8"),
      "audit log of west": readFileSync(memberCluster("west").auditLog, "utf8"),
    };
    const leaks = Object.entries(shown).flatMap(([where, text]) =>
      forbidden.some((each) => text.includes(each)) ? [where] : [],
    );
    expect(leaks).toEqual([]);
    // The searched log is not empty.
    expect(shown["log of the controller"]).toContain("controllers started");
  });
});

/** Creates a Cluster from a kubeconfig, as `legation join` would, until the file has ended. */
async function joinAs(
  name: string,
  { server, user }: { readonly server: string; readonly user: object },
): Promise<void> {
  const { host } = clients();
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  afterFile(async () => {
    await host.delete(clusters, { name }).catch(() => undefined);
    await host.delete(secrets, { namespace: SYSTEM_NAMESPACE, name: `member-${name}` }).catch(() => undefined);
    await eventually(async () => (await host.find(clusters, { name })) === undefined, {
      timeoutMs: 90_000,
      what: `end of Cluster ${name}`,
    });
  });
  const data = { kubeconfig: Buffer.from(JSON.stringify(kubeconfig)).toString("base64") };
  await host.create(secrets, { metadata: { namespace: SYSTEM_NAMESPACE, name: `member-${name}` }, data });
  await host.create(clusters, {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name },
    spec: { credentialsSecret: { name: `member-${name}` } },
  });
}

/** Returns the resident memory of a process, in MiB. */
function memoryOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}
