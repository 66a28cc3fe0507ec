import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import { endpointSlices, pods, services } from "../../../../src/kube/resources.ts";
import { conditionOf } from "../../../../src/pods/pod-state.ts";
import type { Cluster } from "../../../support/clusters/types.ts";
import { afterFile } from "../../../support/harness/after-file.ts";
import { memberCluster, plainCluster } from "../../../support/harness/clusters.ts";
import { podThat } from "../../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { legation } from "../../../support/legation/cli.ts";
import { installRelay, relayReplica, runMemberRelay } from "../../../support/legation/relay.ts";
import { ask, open, SLOWLY_READ, WEB_PORTS, webPod } from "../../../support/streams/web-server.ts";

const PATIENT = { timeoutMs: 90_000 };
const LOOPBACK = "127.0.0.1";
// docs/relay.md#when-something-ends, with two seconds for a busy machine.
const ENDS_WITHIN_MS = 62_000;
const REFUSED_WITHIN_MS = 32_000;
const ECHO_EVERY_MS = 200;

/** Resolves to the milliseconds until the connection is over, or to infinity if it outlives all that is documented. */
function untilClosed(socket: Socket): Promise<number> {
  const began = performance.now();
  socket.resume();
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(Number.POSITIVE_INFINITY), 2 * ENDS_WITHIN_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(performance.now() - began);
    });
  });
}

/** Sends a byte again and again. Returns the longest that one took to come back, or infinity once the connection is over. */
function echoing(socket: Socket): () => number {
  let longest = 0;
  let sentAt = performance.now();
  socket.on("data", () => {
    longest = Math.max(longest, performance.now() - sentAt);
    setTimeout(() => {
      sentAt = performance.now();
      socket.write("x");
    }, ECHO_EVERY_MS);
  });
  socket.once("close", () => {
    longest = Number.POSITIVE_INFINITY;
  });
  socket.write("x");
  return () => Math.max(longest, performance.now() - sentAt);
}

onRealNodes((realNodes) => {
  let place: Place;
  const ports = new Map<string, ReadonlyMap<string, number>>();
  const port = (name: string, of: "http" | "echo" | "slow"): number => ports.get(`far-${name}`)?.get(of) ?? 0;

  /** Runs a web server in the member, with a Service of its name and one that is relayed to it. */
  async function serve(member: string): Promise<void> {
    const { client, namespace } = place;
    const { metadata, ...pod } = webPod(namespace, member);
    const annotations = { "legation.dev/clusters": member };
    await client.create(pods, { ...pod, metadata: { ...metadata, labels: { app: member }, annotations } });
    const own = { selector: { app: member }, ports: [...WEB_PORTS] };
    await client.create(services, { metadata: { name: member, namespace }, spec: own });
    const far = { name: `far-${member}`, namespace, annotations: { "legation.dev/relay": member } };
    const spec = { ports: WEB_PORTS.map(({ name, port: number }) => ({ name, port: number })) };
    await client.create(services, { metadata: far, spec });
    const isReady = (one: Pod): boolean => conditionOf(one, "Ready")?.status === "True";
    await podThat(client, namespace, member, isReady, PATIENT);
    const slice = await eventually(
      () => client.find(endpointSlices, { namespace, name: `${far.name}-relay-ipv4` }),
      PATIENT,
    );
    ports.set(far.name, new Map(slice.ports?.map(({ name = "", port: number = 0 }) => [name, number])));
  }

  function answers(member: string, host = LOOPBACK): Promise<void> {
    return eventuallyPasses(async () => {
      expect((await ask(port(member, "http"), "/name", undefined, host)).text).toBe(`${member}\n`);
    }, PATIENT);
  }

  beforeAll(async () => {
    const running = realNodes().legation;
    await installRelay(running.host, ["192.0.2.1"]);
    await running.join("north", plainCluster());
    afterFile(async () => {
      const given = [`--kubeconfig=${running.host.kubeconfig}`, `--member-kubeconfig=${plainCluster().kubeconfig}`];
      await legation(["unjoin", "north", "--drain", ...given]);
    });
    place = (await realNodes().places({ onFinished: afterFile })).delegating;
    for (const member of ["west", "north"]) await serve(member);
    const relay = await relayReplica(running, LOOPBACK);
    await relay.process.start();
    for (const member of ["west", "north"]) await answers(member);
  }, 300_000);

  test("waits for a pod that reads nothing for more than a minute", async () => {
    await answers("west");
    const socket = await open(port("west", "slow"));
    const sent = randomBytes(SLOWLY_READ);
    socket.write(sent);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toContain(createHash("sha256").update(sent).digest("hex"));
    socket.destroy();
  });

  test.each<[string, (west: Cluster) => Promise<void>]>([
    ["whose packets are lost", ({ proxy }) => proxy.blackhole()],
    ["whose API server accepts and never answers", ({ apiServer }) => apiServer.freeze()],
  ])("ends connections to a member %s in time, and another member's do not notice", async (_, silence) => {
    const west = memberCluster("west");
    await answers("west");
    const socket = await open(port("west", "echo"));
    socket.write("a");
    await once(socket, "data");
    // Its connection to the API server is used again.
    await ask(port("west", "http"), "/name");
    const other = await open(port("north", "echo"));
    onTestFinished(() => void other.destroy());
    const longest = echoing(other);
    onTestFinished(() => west.mend());
    await silence(west);
    const kept = connect(port("west", "http"), LOOPBACK).on("error", () => {});
    kept.write("GET /name HTTP/1.0\r\n\r\n");
    const fresh = connect(port("west", "echo"), LOOPBACK).on("error", () => {});
    const ended = await Promise.all([socket, kept, fresh].map(untilClosed));
    for (const [index, limit] of [ENDS_WITHIN_MS, ENDS_WITHIN_MS, REFUSED_WITHIN_MS].entries()) {
      expect(ended[index], `connection ${index}`).toBeLessThan(limit);
    }
    expect(longest()).toBeLessThan(2_000);
    await answers("north");
    await west.mend();
    await answers("west");
  });

  test("ends connections of a silent member's own pods in time, and leads on once it is back", async () => {
    const { legation: running, inMember } = realNodes();
    const west = inMember(place).cluster;
    await runMemberRelay(running.host, west);
    const { items } = await place.client.list(pods, { namespace: "legation-relay-members" });
    const relay = items[0]?.status?.podIP ?? "";
    await answers("north", relay);
    const socket = await open(port("north", "echo"), relay);
    socket.write("a");
    await once(socket, "data");
    onTestFinished(() => west.mend());
    await west.proxy.blackhole();
    expect(await untilClosed(socket)).toBeLessThan(ENDS_WITHIN_MS);
    await eventuallyPasses(() => expect(open(port("north", "echo"), relay)).rejects.toThrow(), PATIENT);
    await answers("north");
    await west.mend();
    await answers("north", relay);
  });
});
