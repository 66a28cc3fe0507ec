import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KubeObject, Pod } from "../../../src/api/kubernetes.ts";
import { Member } from "../../../src/clusters/member.ts";
import { type MemberWatch, MemberWatches } from "../../../src/clusters/member-watches.ts";
import { Copies } from "../../../src/controllers/copying/copies.ts";
import { MemberSecrets } from "../../../src/controllers/home-api/secrets.ts";
import { PodEventController } from "../../../src/controllers/pod-events/controller.ts";
import { ExportStatus } from "../../../src/controllers/services/exports/status.ts";
import type { ClusterClient, WatchOptions } from "../../../src/kube/client.ts";
import type { KubeError } from "../../../src/kube/errors.ts";
import { configMaps, type Resource } from "../../../src/kube/resources.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { Store } from "../../../src/runtime/store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { servingExports } from "../../support/builders/discovery.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { pod } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const log = createLogger({ level: "silent" });

let clock: FakeClock;

beforeEach(() => {
  clock = new FakeClock();
});

function memberOf(name: string, client: ClusterClient = fakeClient({})): Member {
  return new Member({
    cluster: { metadata: { name, uid: "u", resourceVersion: "1" }, spec: { credentialsSecret: { name: "w" } } },
    client,
    hostId: "host-id",
    events: new Events(),
    clock,
    log,
  });
}

function copiesOfConfigMaps(): Copies<KubeObject> {
  return new Copies<KubeObject>({
    hostId: "host-id",
    kinds: new Map([["ConfigMap", { resource: configMaps }]]),
    onCopy: () => {},
    onRead: () => {},
    clock,
    log,
  });
}

describe("watches of members", () => {
  let done: string[];
  let watches: MemberWatches<MemberWatch>;

  beforeEach(() => {
    done = [];
    watches = new MemberWatches(({ name }) => ({
      start: () => done.push(`start ${name}`),
      retry: () => done.push(`retry ${name}`),
      stop: async () => {
        done.push(`stop ${name}`);
      },
    }));
  });

  test("run once per member while it is followed", () => {
    const [west, east] = [memberOf("west"), memberOf("east")];
    watches.follow([west]);
    watches.follow([west, east]);
    watches.follow([east]);
    expect(done).toEqual(["start west", "start east", "stop west"]);
    expect([...watches].map(([{ name }]) => name)).toEqual(["east"]);
    expect([watches.of(west), watches.of(east)]).toEqual([undefined, expect.anything()]);
  });

  test("leave nothing in their member after they end", async () => {
    const [west, east] = [memberOf("west"), memberOf("east")];
    const own = west.watches.size;
    watches.follow([west, east]);
    expect(west.watches.size).toBe(own + 1);
    expect(watches.keep([east])).toHaveLength(1);
    await watches.stop();
    expect([west.watches.size, east.watches.size]).toEqual([own, own]);
  });

  test("do not start after a stop, nor for a disconnected member", async () => {
    const [west, east] = [memberOf("west"), memberOf("east")];
    await west.stop();
    watches.add(west);
    await watches.stop();
    watches.follow([east]);
    expect(done).toEqual([]);
  });

  test("belong to a connection: a new connection starts a new watch", () => {
    watches.follow([memberOf("west")]);
    watches.follow([memberOf("west")]);
    expect(done).toEqual(["start west", "stop west", "start west"]);
  });
});

describe("a member that answers again", () => {
  let down: boolean;
  /** Who is answered first when it does: until then, nobody is. */
  let awaited: string | undefined;
  let answeredAt: number | undefined;
  /** When each kind was last watched. */
  let watched: Map<string, number>;
  let cut: () => void;
  let member: Member;
  let stops: (() => Promise<void>)[];

  const exportsServed = servingExports("v1beta1");
  const away = (): KubeError => kubeError("NotSent", "no route", { verb: "list", resource: "any" });

  function asked(who: string): void {
    if (who === awaited) {
      awaited = undefined;
      answeredAt = clock.now();
      down = false;
    }
    if (down) throw away();
  }

  async function* watch({ plural }: Resource<KubeObject>, { onOpen, signal }: WatchOptions): AsyncGenerator<never> {
    asked(plural);
    watched.set(plural, clock.now());
    onOpen?.();
    const earlier = cut;
    await new Promise<void>((_, reject) => {
      cut = () => {
        earlier();
        reject(away());
      };
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }

  beforeEach(async () => {
    down = false;
    awaited = undefined;
    watched = new Map();
    cut = () => {};
    const client = fakeClient({
      raw: async ({ path }) => {
        asked("the probe");
        if (path.startsWith("/apis")) return exportsServed({ method: "GET", path });
        return path === "/version" ? { gitVersion: "v1.36.0" } : "ok";
      },
      // Pods are listed once the member was found to be the one that joined.
      find: async () => {
        if (down && awaited !== "pods") throw away();
        return undefined;
      },
      list: async ({ plural }) => {
        asked(plural);
        const items = plural === "pods" ? [pod({ metadata: { name: "web-0" } })] : [];
        return { items, resourceVersion: "1", size: 0 };
      },
      watch,
    });
    member = memberOf("west", client);
    stops = [() => member.stop()];
    member.start();
    await clock.advance(1_000);
  });

  afterEach(async () => {
    for (const stop of stops) await stop();
  });

  const whatIsWatched: Record<string, () => () => Promise<void>> = {
    configmaps: () => {
      const copies = copiesOfConfigMaps();
      copies.follow([member]);
      copies.need(member, "ConfigMap");
      return () => copies.stop();
    },
    secrets: () => {
      const secrets = new MemberSecrets({
        hostId: "host-id",
        onSecret: () => {},
        onRead: () => {},
        clock,
        log,
      });
      secrets.follow([member]);
      secrets.need(member);
      return () => secrets.stop();
    },
    serviceexports: () => {
      const status = new ExportStatus({
        host: fakeClient({}),
        hostId: "host-id",
        exportOf: () => ({ state: "missing" }),
        counts: () => false,
        clock,
        log,
      });
      status.listenTo(member);
      return () => status.stop();
    },
    events: () => {
      const controller = new PodEventController({
        host: fakeClient({}),
        registry: { members: () => [member] },
        proxies: new Store<Pod>(),
        warningsOnly: false,
        events: new Events(),
        clock,
        log,
      });
      controller.start();
      return () => controller.stop();
    },
  };

  /** The member goes away for so long; then nobody is answered before `first` is. */
  async function comesBack(forMs: number, first: string): Promise<void> {
    down = true;
    cut();
    await clock.advance(forMs);
    expect(member.reachable).toBe(false);
    watched.clear();
    awaited = first;
    while (awaited !== undefined) await clock.fireNext();
  }

  async function beginsWith(plural: string): Promise<void> {
    const begin = whatIsWatched[plural];
    if (begin !== undefined) stops.unshift(begin());
    await clock.advance(1_000);
    expect(watched.has(plural)).toBe(true);
  }

  // A short absence may fall between two probes.
  test.each(
    Object.keys(whatIsWatched).flatMap((plural) => [
      [plural, 60_000, "the probe"] as const,
      [plural, 2_000, "pods"] as const,
    ]),
  )("is watched for %s again at once, after %d ms, when %s had the first answer", async (plural, forMs, first) => {
    await beginsWith(plural);
    await comesBack(forMs, first);
    expect(watched.get(plural)).toBe(answeredAt);
  });

  // The next probe of its own would be ten seconds away.
  test.each(Object.keys(whatIsWatched))(
    "is probed within a second when it was lost and a watch finds it: %s",
    async (plural) => {
      await beginsWith(plural);
      await comesBack(20_000, "pods");
      await clock.advance(1_000);
      expect(member.reachable).toBe(true);
      expect(watched.get(plural)).toBeLessThanOrEqual((answeredAt ?? 0) + 1_000);
    },
  );
});

test("watches of a kind that one copier needs are needed by all of the member", () => {
  const member = memberOf("west");
  const asked: string[] = [];
  const copies = copiesOfConfigMaps();
  for (const plural of ["configmaps", "secrets"]) {
    member.watches.add({ plural, retry: () => {}, need: () => asked.push(plural) });
  }
  copies.need(member, "ConfigMap");
  expect(asked).toEqual(["configmaps"]);
});

test("gives a member that joins again a new nodes version, because its Cluster may have been replaced", async () => {
  const [before, after] = [memberOf("west"), memberOf("west")];
  expect(after.nodesVersion).not.toBe(before.nodesVersion);
  expect(after.roomVersion).not.toBe(before.roomVersion);
  await Promise.all([before.stop(), after.stop()]);
});
