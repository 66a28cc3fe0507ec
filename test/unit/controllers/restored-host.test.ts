import { expect, test, vi } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../src/controllers/events.ts";
import { KeptDelegates, RestoredHost } from "../../../src/controllers/restored-host.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import type { LeaderElector } from "../../../src/runtime/leader-election.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { delegates, member } from "../../support/builders/member.ts";
import { pod } from "../../support/builders/pod.ts";
import { quietClient } from "./quiet-client.ts";

const log = createLogger({ level: "silent" });
const election: Pick<LeaderElector, "leaderless" | "confirm"> = {
  leaderless: [[Date.parse("2026-01-02T00:00:00Z"), Date.parse("2026-01-03T00:00:00Z")]],
  confirm: async () => true,
};

test("keeps what was created while no controller led, and nothing without elections", () => {
  const kept = (created: string, of: typeof election | undefined) =>
    new RestoredHost({ election: of, log }).keeps("west", "a Job", { name: "sum", creationTimestamp: created });
  expect(kept("2026-01-02T12:00:00Z", election)).toBe(true);
  expect(kept("2026-01-04T00:00:00Z", election)).toBe(false);
  expect(kept("2026-01-02T12:00:00Z", undefined)).toBe(false);
});

test("lets nothing be deleted while the host does not have the Lease as this leader renewed it", async () => {
  const { signal } = new AbortController();
  const confirmed = (answer: boolean) =>
    new RestoredHost({ election: { ...election, confirm: async () => answer }, log }).confirm("west", "pods", signal);
  await expect(confirmed(true)).resolves.toBeUndefined();
  await expect(confirmed(false)).rejects.toMatchObject({ code: "NotSent", verb: "delete", resource: "pods" });
});

test("counts a kept delegate once, while the member has it", () => {
  const delegate: Stored<Pod> = pod({ uid: "d1", metadata: { creationTimestamp: "2026-01-02T12:00:00Z" } });
  const has = delegates({ get: () => delegate });
  const west = member("west", quietClient([]), { delegates: has });
  const events = new Events<ControllerEvents>();
  const onKept = vi.fn();
  events.on("kept", onKept);
  const countHeld = vi.fn();
  const kept = new KeptDelegates({
    restoredHost: new RestoredHost({ election, log }),
    registry: { member: (name) => (name === "west" ? west : undefined) },
    metrics: { members: { countHeld } },
    events,
  });
  const key = objectKey(delegate.metadata);
  expect([kept.keeps("west", key, "d1"), kept.keeps("west", key, "d1"), kept.keeps("west", key, "d2")]).toEqual([
    true,
    true,
    false,
  ]);
  expect([onKept.mock.calls, countHeld.mock.calls, kept.countIn("west"), kept.countIn("east")]).toEqual([
    [["west"]],
    [["west"]],
    1,
    0,
  ]);
});
