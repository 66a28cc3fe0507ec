import { expect, test } from "vitest";
import { type ObjectKey, objectKey } from "../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../src/controllers/events.ts";
import { RefusedWrites } from "../../../src/controllers/refused-writes.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { proxyWrites } from "../../../src/scheduling/memories.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

const key = objectKey({ namespace: "team", name: "web-0" });

/** Returns refused writes, what authors were told, and the pods that are to show it. */
function refusing() {
  const world = { at: 1_000_000 };
  const told: string[] = [];
  const shown: ObjectKey[] = [];
  const events = new Events<ControllerEvents>();
  events.on("refusedWrite", (of) => shown.push(of));
  const recorder = { record: (_object: object, { message }: { readonly message: string }) => void told.push(message) };
  const refused = new RefusedWrites({ writes: proxyWrites({ now: () => world.at }), recorder, events });
  return { refused, told, shown, world };
}

test("tells a refusal once, whatever its numbers, and shows it until it is over", () => {
  const { refused, told, shown } = refusing();
  const tell = (pods: number, what = "create") =>
    refused.tell(key, "uid", what, { reason: "NotPlaced", message: `quota: ${pods} pods` });
  expect([tell(1), tell(2), tell(1, "bind")]).toEqual([true, false, true]);
  expect(told).toEqual(["quota: 1 pods", "quota: 1 pods"]);
  expect(shown).toEqual([key, key]);
  refused.over(key, "uid", "create");
  refused.over(key, "uid", "create");
  expect(shown).toHaveLength(3);
});

test("tells errors that last, and no refusal of a cluster that gives no answer", () => {
  const { refused, told, world } = refusing();
  const note = (code: Parameters<typeof kubeError>[0], status?: number) =>
    refused.note(key, "uid", "status", kubeError(code, "no", status === undefined ? {} : { status }), {
      reason: "StatusRefused",
      message: code,
    });
  note("NotSent");
  note("Forbidden", 403);
  note("ServerError", 500);
  world.at += 10_001;
  note("ServerError", 500);
  expect(told).toEqual(["Forbidden", "ServerError"]);
});
