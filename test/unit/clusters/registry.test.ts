import { describe, expect, onTestFinished, test } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES } from "../../../src/api/shards.ts";
import { Registry, type RegistryEvents } from "../../../src/clusters/registry.ts";
import type { WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answering, answerOf, listing, writing } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const nothing = (): void => {};
const cluster = {
  metadata: { name: "west", uid: "u", resourceVersion: "1" },
  spec: { credentialsSecret: { name: "member-west" }, probe: { periodSeconds: 300 } },
};
const secret = (kubeconfig: string): object => ({
  metadata: { namespace: "legation-system", name: "member-west", uid: "s", resourceVersion: kubeconfig },
  data: { kubeconfig: btoa(kubeconfig) },
});

test("probes a member at once after its credentials were replaced", async () => {
  const clock = new FakeClock();
  const written = Promise.withResolvers<object>();
  const host = fakeClient({
    list: listing((plural) => (plural === "clusters" ? [cluster] : [secret("1")])),
    watch: async function* <T extends KubeObject>(
      { plural }: Resource<T>,
      { onOpen }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      onOpen?.();
      if (plural === "secrets") yield { type: "MODIFIED", object: answerOf<T>(await written.promise), size: 0 };
      await new Promise(nothing);
    },
  });
  let current = "";
  const client = fakeClient({
    raw: async () => {
      if (current === "1") throw kubeError("Unauthorized", "the token has ended", { verb: "get", resource: "/readyz" });
      return {};
    },
    list: () => Promise.reject(kubeError("ServerError", "not now", { verb: "list" })),
  });
  const registry = new Registry({
    host,
    hostId: "host",
    shard: ALL_NAMESPACES,
    connect: (_name, kubeconfig) => {
      current = kubeconfig;
      const renew = (next: string): boolean => {
        current = next;
        return true;
      };
      return { client, server: "https://192.0.2.1", renew };
    },
    events: new Events(),
    clock,
    log: createLogger({ level: "silent" }),
  });
  await registry.start(new AbortController().signal);
  await clock.advance(2_000);
  expect(registry.member("west")?.probed).toMatchObject({
    reachable: false,
    message: expect.stringContaining("ended"),
  });
  written.resolve(secret("2"));
  await expect.poll(() => current).toBe("2");
  await clock.advance(1_000);
  expect(registry.member("west")?.probed.reachable).toBe(true);
  await registry.member("west")?.stop();
});

describe("a Cluster", () => {
  interface Written {
    readonly type: "ADDED" | "MODIFIED" | "DELETED";
    readonly object: object;
  }
  const named = (name: string, secretName: string, annotations: Record<string, string> = {}): object => ({
    metadata: {
      name,
      uid: name,
      resourceVersion: "1",
      creationTimestamp: `2026-01-01T00:00:0${name.length}Z`,
      annotations,
    },
    spec: { credentialsSecret: { name: secretName }, probe: { periodSeconds: 300 } },
  });
  const west = named("west", "member-west", { "legation.dev/member-uid": "uid-of-west" });

  async function running(clusters: object[]) {
    const clock = new FakeClock();
    const recorded: string[] = [];
    const told: string[] = [];
    let write = Promise.withResolvers<Written>();
    const host = fakeClient({
      list: listing((plural) => (plural === "clusters" ? clusters : [secret("1")])),
      watch: async function* <T extends KubeObject>(
        { plural }: Resource<T>,
        { onOpen }: WatchOptions,
      ): AsyncGenerator<WatchEvent<T>> {
        onOpen?.();
        if (plural !== "clusters") await new Promise(nothing);
        while (true) {
          const { type, object } = await write.promise;
          yield { type, object: answerOf<T>(object), size: 0 };
        }
      },
      ...writing(({ name, body }) => {
        const { metadata }: KubeObject = body;
        recorded.push(`${name} ${JSON.stringify(metadata)}`);
      }),
    });
    const listed: string[] = [];
    const events = new Events<RegistryEvents>();
    events.on("cluster", (name) => told.push(name));
    const registry = new Registry({
      host,
      hostId: "host",
      shard: ALL_NAMESPACES,
      connect: ({ metadata: { name } }) => {
        const client = fakeClient({
          raw: async () => ({}),
          find: answering({ metadata: { name: "kube-system", uid: "uid-of-west" } }),
          list: listing(() => {
            listed.push(name);
            return [];
          }),
          watch: async function* <T extends KubeObject>(
            _resource: Resource<T>,
            { onOpen, signal }: WatchOptions,
          ): AsyncGenerator<WatchEvent<T>> {
            onOpen?.();
            await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
            yield* [];
          },
        });
        return { client, server: "https://192.0.2.1", renew: () => true };
      },
      events,
      clock,
      log: createLogger({ level: "silent" }),
    });
    await registry.start(new AbortController().signal);
    await clock.advance(2_000);
    const put = async (written: Written): Promise<void> => {
      const { resolve } = write;
      write = Promise.withResolvers();
      resolve(written);
      await clock.advance(2_000);
    };
    onTestFinished(async () => {
      await Promise.all(registry.members().map((member) => member.stop()));
    });
    return { registry, put, told, listed, recorded };
  }

  test("records the first member that its agent leads to, once", async () => {
    const cluster = named("west", "member-west");
    const { spec } = cluster as { spec: object };
    const { put, recorded } = await running([{ ...cluster, spec: { ...spec, agent: {} } }]);
    const annotations = { "legation.dev/member-uid": "uid-of-west" };
    expect(recorded).toEqual([`west ${JSON.stringify({ uid: "west", resourceVersion: "1", annotations })}`]);
    await put({ type: "MODIFIED", object: { ...west, spec: { ...spec, agent: {} } } });
    expect(recorded).toHaveLength(1);
  });

  test("is refused if its member has joined under another name, with that name, and nothing is read", async () => {
    const { registry, put, told, listed } = await running([west]);
    await put({ type: "ADDED", object: named("second", "member-west") });
    expect(registry.joinedAs("second")).toBe("west");
    expect(registry.problem("second")).toContain("has joined already, as Cluster west");
    expect(registry.members().map(({ name }) => name)).toEqual(["west"]);
    expect(registry.member("west")?.reachable).toBe(true);
    expect(new Set(listed)).toEqual(new Set(["west"]));
    expect(told.at(-1)).toBe("second");
  });

  test("is refused as well after a restart, whichever of the two is listed first", async () => {
    const { registry } = await running([named("second", "member-west"), west]);
    expect([registry.joinedAs("second"), registry.joinedAs("west")]).toEqual(["west", undefined]);
    expect(registry.members().map(({ name }) => name)).toEqual(["west"]);
  });

  test("has another candidate in the list of all whenever room in its member is taken", async () => {
    const { registry } = await running([west]);
    const before = registry.candidates();
    expect(registry.candidates()).toBe(before);
    registry.member("west")?.requests.reserve("proxy", { cpu: 1 });
    const after = registry.candidates();
    expect(after[0]).not.toBe(before[0]);
    expect(after[0]?.used).toEqual({ cpu: 1 });
    expect(registry.candidates()).toBe(after);
  });

  test("is connected once the other one of its member has left", async () => {
    const { registry, put } = await running([west, named("second", "member-west")]);
    expect(registry.members().map(({ name }) => name)).toEqual(["west"]);
    await put({ type: "DELETED", object: west });
    expect([registry.joinedAs("second"), registry.problem("second")]).toEqual([undefined, undefined]);
    expect(registry.member("second")?.reachable).toBe(true);
  });
});
