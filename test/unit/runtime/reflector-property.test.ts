import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { pods } from "../../../src/kube/resources.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { Reflector, type ReflectorEvent } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { settle } from "../../support/clock/fake-clock.ts";
import { connect } from "../../support/fault-server/connect.ts";
import { FaultServer, line } from "../../support/fault-server/fault-server.ts";
import { cut, refuse, stream } from "../../support/fault-server/faults.ts";

// Pauses pass at once: what matters here is the order of things.
const hasty: Clock = { ...realClock, sleep: (_ms, signal) => realClock.sleep(1, signal) };

type Step = (server: FaultServer) => void | Promise<void>;

const name = fc.constantFrom("a", "b", "c", "d");
const pod = (podName: string): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "default", name: podName },
});
const expired = line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" });

/** Every step has a name, so that a counterexample can be read. */
const change = fc.oneof(
  { weight: 2, arbitrary: name.map((n) => named(`put ${n}`, ({ world }) => void world.put(pod(n)))) },
  { weight: 1, arbitrary: name.map((n) => named(`remove ${n}`, ({ world }) => void world.remove(pod(n)))) },
  {
    weight: 1,
    arbitrary: name.map((n) =>
      named(`replace ${n}`, ({ world }) => {
        world.remove(pod(n));
        world.put(pod(n));
      }),
    ),
  },
);

const step = fc.oneof(
  { weight: 5, arbitrary: fc.constant(named("let it catch up", catchUp)) },
  { weight: 10, arbitrary: change },
  {
    weight: 3,
    arbitrary: fc.array(change, { minLength: 1, maxLength: 6 }).map((changes) =>
      named(`unseen and forgotten: ${changes.join(", ")}`, async (server) => {
        await server.stop();
        for (const { run } of changes) await run(server);
        server.world.compact();
        await server.listen();
      }),
    ),
  },
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      named("let a little happen", () => settle()),
      named("bookmark", (server) => server.bookmark()),
      named("compact", ({ world }) => world.compact()),
      named("end watches", (server) => server.endWatches()),
      named("cut connections", (server) => server.cutConnections()),
      named("410 in the middle", (server) => server.writeToWatches(expired)),
      named("half an event", (server) => server.writeToWatches('{"type":"ADDED","obj')),
      named("expire continue tokens", (server) => server.expireContinueTokens()),
      named("refuse the next with 500", (server) => void server.faults.push(refuse(500, "InternalError"))),
      named("refuse the next with 410", (server) => void server.faults.push(refuse(410, "Expired"))),
      named("cut the next", (server) => void server.faults.push(cut)),
      named("answer the next with nonsense", (server) => void server.faults.push(stream("nonsense\n", "end"))),
      named("go away and come back", async (server) => {
        await server.stop();
        await server.listen();
      }),
    ),
  },
);

async function catchUp(server: FaultServer): Promise<void> {
  for (let wait = 0; wait < 50 && server.openWatches === 0; wait += 1) await realClock.sleep(2);
  await settle();
}

function named(label: string, run: Step): { run: Step; toString: () => string } {
  return { run, toString: () => label };
}

describe("a reflector, after any sequence of changes and failures,", () => {
  test("has the server's objects in its store, and has reported every difference", {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const server = await FaultServer.start();
        const client = connect(server, { limits: { timeoutMs: 2_000, perSecond: 1e6, burst: 1e6 } });
        const told = new Map<string, string>();
        const problems: string[] = [];
        const reflector = new Reflector<Pod>({
          client,
          resource: pods,
          clock: hasty,
          log: createLogger({ level: "silent" }),
          onEvent: (event) => follow(told, problems, event),
        });
        try {
          reflector.start();
          for (const { run } of steps) await run(server);
          server.faults.length = 0;
          const truth = [...server.world.objects.values()].map(
            ({ metadata }) => `${metadata.uid}@${metadata.resourceVersion}`,
          );
          const seen = (): string[] =>
            reflector.store.list().map(({ metadata }) => `${metadata.uid}@${metadata.resourceVersion}`);
          await expect
            .poll(() => [reflector.state, seen().sort()], { timeout: 5_000, interval: 5 })
            .toEqual(["watching", truth.sort()]);
          expect([...told.values()].sort()).toEqual(truth);
          expect(problems).toEqual([]);
        } finally {
          await reflector.stop();
          await client.close();
          await server.stop();
        }
      }),
      { numRuns: 60 },
    );
  });
});

/** Builds a second store from the events alone; `problems` are events that do not fit what was told before. */
function follow(told: Map<string, string>, problems: string[], event: ReflectorEvent<Pod>): void {
  const { name: podName, uid, resourceVersion } = event.object.metadata;
  const known = told.get(podName)?.split("@")[0];
  if (known !== (event.type === "added" ? undefined : uid))
    problems.push(`${event.type} ${podName} ${uid} after ${known}`);
  if (event.type === "deleted") told.delete(podName);
  else told.set(podName, `${uid}@${resourceVersion}`);
}
