import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, onTestFailed, onTestFinished, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { RELAY_SLICE_MANAGER } from "../../../src/api/relay.ts";
import { ignoring } from "../../../src/kube/errors.ts";
import { endpointSlices, pods, services } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { hostCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { metricsOf } from "../../support/harness/metrics-of.ts";
import { podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { type Diagnosis, doctor, remedyOf, UNHURRIED } from "../../support/legation/doctor.ts";
import { legationOn } from "../../support/legation/process.ts";
import { installRelay, type RelayReplica, relayReplica, runMemberRelay } from "../../support/legation/relay.ts";
import { ask, LARGE, open, WEB_PORTS, webPod } from "../../support/streams/web-server.ts";

const FIRST = "127.0.0.1";
const SECOND = "127.0.0.2";
// Documentation addresses (RFC 5737): slices must not name loopback, and tests connect by themselves.
const ADDRESSES = ["192.0.2.1", "192.0.2.2"];
const PATIENT = { timeoutMs: 90_000 };

const isReady = (pod: Pod): boolean => conditionOf(pod, "Ready")?.status === "True";

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

onRealNodes((realNodes) => {
  let place: Place;
  let first: RelayReplica;
  let second: RelayReplica;
  let ports: ReadonlyMap<string, number>;
  const port = (name: string): number => ports.get(name) ?? 0;

  /** Returns the replicas' ports of a relayed Service by the name of its own. */
  async function portsOf(service: string): Promise<ReadonlyMap<string, number>> {
    const { client, namespace } = place;
    const labelSelector = `kubernetes.io/service-name=${service},endpointslice.kubernetes.io/managed-by=${RELAY_SLICE_MANAGER}`;
    return eventually(async () => {
      const { items } = await client.list(endpointSlices, { namespace, labelSelector });
      const [slice] = items;
      return slice && new Map(slice.ports?.map(({ name = "", port: number = 0 }) => [name, number]));
    }, PATIENT);
  }

  beforeAll(async () => {
    const { legation } = realNodes();
    await installRelay(legation.host, ADDRESSES);
    place = (await realNodes().places({ onFinished: afterFile })).delegating;
    const { client, namespace } = place;
    await client.create(services, {
      metadata: { name: "web", namespace },
      spec: {
        selector: { app: "web" },
        ports: [...WEB_PORTS],
      },
    });
    const spec = {
      ports: [
        { name: "web", port: 8080, targetPort: "http" },
        { name: "echo", port: 9000 },
        { name: "late", port: 9001 },
        { name: "closed", port: 1 },
      ],
    };
    const annotations = { "legation.dev/relay": "web" };
    await client.create(services, { metadata: { name: "far-web", namespace, annotations }, spec });
    await client.create(pods, webPod(namespace, "web-0"));
    await podThat(client, namespace, "web-0", isReady, PATIENT);
    [first, second] = [await relayReplica(legation, FIRST), await relayReplica(legation, SECOND, ["--drain=3s"])];
    await Promise.all([first, second].map(({ process }) => process.start()));
    ports = await portsOf("far-web");
    await isCarried();
  }, 300_000);

  /** Waits until a new connection reaches a pod. */
  async function isCarried(): Promise<void> {
    await eventuallyPasses(async () => expect((await ask(port("web"), "/name")).status).toBe(200), PATIENT);
  }

  test("leads a Service to the replicas, each at the same ports", async () => {
    const { client, namespace } = place;
    const { endpoints } = await client.get(endpointSlices, { namespace, name: "far-web-relay-ipv4" });
    expect(endpoints?.flatMap(({ addresses }) => addresses)).toEqual(ADDRESSES);
    for (const host of [FIRST, SECOND]) {
      await eventuallyPasses(async () => {
        expect(await ask(port("web"), "/name", undefined, host)).toEqual({ status: 200, text: "web-0\n" });
      }, PATIENT);
    }
  });

  test("carries large bodies both ways without a change", async () => {
    const [expected] = (await ask(port("web"), "/sum")).text.split(" ");
    const received = createHash("sha256");
    const socket = await open(port("web"));
    socket.write("GET /large HTTP/1.0\r\n\r\n");
    const bytes = await buffer(socket);
    socket.destroy();
    const body = bytes.subarray(bytes.indexOf("\r\n\r\n") + 4);
    expect(body.length).toBe(LARGE);
    expect(received.update(body).digest("hex")).toBe(expected);
    const sent = randomBytes(LARGE);
    expect((await ask(port("web"), "/cgi-bin/sum", sent)).text.split(" ")[0]).toBe(sha256(sent));
  });

  test("carries both directions of one connection at once", async () => {
    const socket = await open(port("echo"));
    const sent = randomBytes(LARGE);
    const received: Buffer[] = [];
    let length = 0;
    const all = new Promise<void>((resolve) => {
      socket.on("data", (chunk: Buffer) => {
        received.push(chunk);
        length += chunk.length;
        if (length >= LARGE) resolve();
      });
    });
    socket.write(sent);
    await all;
    expect(sha256(Buffer.concat(received))).toBe(sha256(sent));
    socket.destroy();
  });

  test("holds no reader up beside one that does not read", async () => {
    const slow = await open(port("web"));
    slow.pause();
    slow.write("GET /large HTTP/1.0\r\n\r\n");
    await sleep(1_000);
    const began = performance.now();
    expect((await ask(port("web"), "/name")).text).toBe("web-0\n");
    expect(performance.now() - began).toBeLessThan(2_000);
    const [expected] = (await ask(port("web"), "/sum")).text.split(" ");
    slow.resume();
    const bytes = await buffer(slow);
    expect(sha256(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4))).toBe(expected);
    slow.destroy();
  });

  test("lets a client that has sent everything read on", async () => {
    // Containerd waits for the other direction for a second.
    const socket = await open(port("late"));
    socket.end("a line\n");
    expect(String(await buffer(socket))).toBe("late\n");
  });

  test("ends a client's connection when the server ends it", async () => {
    const socket = await open(port("web"));
    socket.write("GET /name HTTP/1.0\r\n\r\n");
    expect(String(await buffer(socket))).toMatch(/web-0\n$/);
    socket.destroy();
  });

  test("resets a connection to a port on which nothing listens", async () => {
    const { client, namespace } = place;
    await client.patch(
      services,
      { namespace, name: "web" },
      { type: "json", body: [{ op: "add", path: "/spec/ports/-", value: { name: "closed", port: 1 } }] },
    );
    await eventuallyPasses(async () => {
      const before = (await metricsOf(first.healthPort))('legation_relay_connections_total{cluster="west"}') ?? 0;
      const socket = connect(port("closed"), FIRST);
      expect(await new Promise((resolve) => socket.once("error", resolve))).toMatchObject({ code: "ECONNRESET" });
      expect((await metricsOf(first.healthPort))('legation_relay_connections_total{cluster="west"}')).toBe(before + 1);
    }, PATIENT);
    expect(
      (await metricsOf(first.healthPort))('legation_relay_failures_total{cluster="west",reason="Cut"}'),
    ).toBeGreaterThan(0);
  });

  test("has its way probed by `legation doctor --service`", async () => {
    const probe = (service: string): Promise<Diagnosis> => doctor(UNHURRIED, `--service=${place.namespace}/${service}`);
    const [open, closed, direct] = [await probe("far-web:web"), await probe("far-web:closed"), await probe("web:80")];
    expect(open.states("west, by the way of legation relay: pod web-0")).toEqual(["OK"]);
    expect(remedyOf(closed, "connection refused")).toContain("listens on that port");
    const silent = await doctor("--timeout=5s", `--service=${place.namespace}/web:9001`);
    expect(silent.states("west: pod web-0")).toEqual(["WARN"]);
    expect(direct.states("its own pods: pod web-0")).toEqual(["OK"]);
    expect(direct.states("west: pod web-0")).toEqual(["OK"]);
    expect(remedyOf(await probe("web:closed"), "west: pod web-0")).toContain("at all addresses");
    const wrong = await legationOn(hostCluster(), "doctor", `--service=${place.namespace}/web:81`);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/has no port 81\s+its ports are 80, 9000/) });
  });

  test("counts open connections", async () => {
    const counted = async (): Promise<number | undefined> =>
      (await metricsOf(first.healthPort))('legation_relay_open_connections{cluster="west"}');
    await eventuallyPasses(async () => expect(await counted()).toBe(0), PATIENT);
    const socket = await open(port("echo"));
    await eventuallyPasses(async () => expect(await counted()).toBe(1), PATIENT);
    socket.destroy();
    await eventuallyPasses(async () => expect(await counted()).toBe(0), PATIENT);
  });

  test("leads new connections to other pods while one ends", async () => {
    const { client, namespace } = place;
    onTestFailed(() => console.error(first.process.log()));
    // An attempt that failed may have left either.
    for (const name of ["web-0", "web-1"]) {
      await ignoring(client.create(pods, webPod(namespace, name)), "AlreadyExists");
      await podThat(client, namespace, name, isReady, PATIENT);
    }
    const seen = new Set<string>();
    await eventuallyPasses(async () => {
      seen.add((await ask(port("web"), "/name")).text);
      expect(seen).toEqual(new Set(["web-0\n", "web-1\n"]));
    }, PATIENT);
    await client.patch(
      services,
      { namespace, name: "far-web" },
      { type: "merge", body: { spec: { sessionAffinity: "ClientIP" } } },
    );
    const sameClient = async (): Promise<Set<string>> =>
      new Set(await Promise.all(Array.from({ length: 8 }, async () => (await ask(port("web"), "/name")).text)));
    await eventuallyPasses(async () => expect((await sameClient()).size).toBe(1), PATIENT);
    const [given = ""] = await sameClient();
    await client.delete(pods, { namespace, name: given.trim() });
    const other = given === "web-0\n" ? "web-1\n" : "web-0\n";
    await eventuallyPasses(async () => expect([...(await sameClient())]).toEqual([other]), PATIENT);
  });

  test("resets a client whose pod has terminated while the kubelet still connects to it", async () => {
    const { client, namespace } = place;
    const labels = { app: "mute" };
    // The kubelet's SYN gets no answer, as while a node takes the pod's network away.
    const command = ["sh", "-c", "ip link set lo down; trap 'exit 0' TERM; sleep 3600 & wait"];
    const securityContext = { capabilities: { add: ["NET_ADMIN"] } };
    const container = { name: "main", image: "localhost/busybox:1", command, securityContext };
    const ports = [{ name: "web", port: 80 }];
    const annotations = { "legation.dev/relay": "mute" };
    await client.create(services, { metadata: { name: "mute", namespace }, spec: { selector: labels, ports } });
    await client.create(services, { metadata: { name: "far-mute", namespace, annotations }, spec: { ports } });
    const metadata = { name: "mute", namespace, labels };
    await client.create(pods, { metadata, spec: { terminationGracePeriodSeconds: 1, containers: [container] } });
    await podThat(client, namespace, "mute", isReady, PATIENT);
    const port = (await portsOf("far-mute")).get("web") ?? 0;
    const reset = await eventually(async () => {
      const socket = await open(port);
      const ended = new Promise((resolve) => socket.once("error", resolve));
      const isHeld = await Promise.race([ended.then(() => false), sleep(2_000, true)]);
      return isHeld && { ended };
    }, PATIENT);
    const began = performance.now();
    await client.delete(pods, metadata);
    expect(await reset.ended).toMatchObject({ code: "ECONNRESET" });
    // The kubelet's connection times out after 131 s.
    expect(performance.now() - began).toBeLessThan(60_000);
  });

  test("ends streams with the leading controller, and carries new connections by the next one", async () => {
    const { controller, another } = realNodes().legation;
    const next = await another("controller", ["--identity=next", `--kubelet-listen=127.0.0.1:${await freePort()}`]);
    await next.start();
    onTestFinished(async () => {
      await next.stop();
      await controller.start();
      await isCarried();
    });
    const socket = await open(port("echo"));
    socket.write("a");
    await once(socket, "data");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await controller.stop();
    await closed;
    await isCarried();
    expect(next.log()).toContain("controllers started");
  });

  test("carries connections of a member's pods, by a relay there", async () => {
    const { legation, inMember } = realNodes();
    const west = inMember(place);
    await runMemberRelay(legation.host, west.cluster);
    const labelSelector = "kubernetes.io/service-name=far-web";
    const address = await eventually(async () => {
      const { items } = await west.client.list(endpointSlices, { namespace: west.namespace, labelSelector });
      return items[0]?.endpoints?.find(({ conditions }) => conditions?.ready)?.addresses[0];
    }, PATIENT);
    const { items } = await west.client.list(pods, { namespace: west.namespace });
    const [pod] = items.map(({ metadata }) => metadata.name);
    const ask = `printf 'GET /name HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${address} ${port("web")} | tail -n 1`;
    const args = ["exec", "-n", west.namespace, pod ?? "", "--", "sh", "-c", ask];
    await eventuallyPasses(async () => expect(await kubectl(west.cluster, args)).toMatch(/^web-\d\n$/), PATIENT);
  });

  test("serves the same ports after it was killed, which ends what was open", async () => {
    const socket = await open(port("echo"));
    socket.write("a");
    await once(socket, "data");
    // The kernel ends the connections of a process that is gone.
    const ended = once(socket, "end");
    await first.process.stop("SIGKILL");
    await ended;
    await first.process.start();
    expect(await portsOf("far-web")).toEqual(ports);
    await isCarried();
  });

  test("lets open connections go on when it is asked to end, and fails no client that still comes", async () => {
    const socket = await open(port("echo"), SECOND);
    socket.write("before\n");
    expect(String((await once(socket, "data"))[0])).toBe("before\n");
    const stopped = second.process.stop();
    // kube-proxy leads clients to it until it has heard.
    const forgotten = performance.now() + 1_000;
    while (performance.now() < forgotten) {
      expect((await ask(port("web"), "/name", undefined, SECOND)).status).toBe(200);
      expect((await ask(port("web"), "/name")).status).toBe(200);
    }
    await eventuallyPasses(async () => {
      await expect(open(port("echo"), SECOND)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    }, PATIENT);
    socket.write("while it drains\n");
    expect(String((await once(socket, "data"))[0])).toBe("while it drains\n");
    socket.destroy();
    await stopped;
  });
});
