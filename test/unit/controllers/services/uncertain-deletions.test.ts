import { expect, test } from "vitest";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { type Clock, realClock, sleepWith } from "../../../../src/runtime/clock.ts";
import { controllersOf } from "../../../bench/scale/controllers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { useFleet } from "../../../support/harness/fleet.ts";
import { eventually } from "../../../support/harness/wait.ts";

const NAMESPACE = "load";
// Pods and nodes. Copies are not watched before there are any.
const READ_IN_A_MEMBER = 2;
// Delays of ten seconds take two here, and pods wait for one.
const FASTER = 5;
const BEGUN = realClock.now();
const after: Clock["after"] = (ms, callback) => realClock.after(ms / FASTER, callback);
const clock: Clock = {
  now: () => BEGUN + (realClock.now() - BEGUN) * FASTER,
  wall: realClock.wall,
  after,
  sleep: sleepWith(after),
};
const quickly = { intervalMs: 10 };

const running = useFleet(1, 0);

/** Returns the client, but loses the response to the first deletion of a Service, which may happen or not. */
function losingOne(client: ClusterClient, onLost: () => void): ClusterClient {
  let lost = false;
  const remove: ClusterClient["delete"] = async (resource, ref, options) => {
    if (resource.plural !== "services" || lost) return client.delete(resource, ref, options);
    lost = true;
    onLost();
    throw kubeError("AnswerLost", "cut", { cluster: "member-0", verb: "delete", resource: "services" });
  };
  return new Proxy(client, {
    get: (target, name) => {
      if (name === "delete") return remove;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("starts a pod with a Service's copy that stays, if it comes while the deletion of an earlier copy is uncertain", async () => {
  const { fleet } = running;
  const { host, members } = fleet;
  const [member] = members;
  if (member === undefined) throw new Error("no member");
  const copyUid = (): unknown => member.get("services", NAMESPACE, "web")?.metadata.uid;
  const foundBy = new Map<string, unknown>();
  member.onWrite = (method, { collection }, object) => {
    if (method === "POST" && collection === "pods") foundBy.set(object?.metadata.name ?? "", copyUid());
  };
  const { connect } = controllersOf(fleet);
  await running.start({
    clock,
    connect: (...args) => {
      const connection = connect(...args);
      const client = losingOne(connection.client, () => host.put("pods", fleet.pod("web-1")));
      return { ...connection, client };
    },
  });
  await eventually(() => member.openWatches >= READ_IN_A_MEMBER, quickly);
  host.put("services", {
    metadata: { namespace: NAMESPACE, name: "web" },
    spec: { type: "ClusterIP", clusterIP: "10.0.0.1", selector: { app: "web" }, ports: [{ port: 80 }] },
  });
  host.put("pods", fleet.pod("web-0"));
  await eventually(() => foundBy.has("web-0"), quickly);
  const uncertain = foundBy.get("web-0");
  expect(uncertain).toBeDefined();
  host.erase("pods", NAMESPACE, "web-0");
  await eventually(() => foundBy.has("web-1"), quickly);
  expect(foundBy.get("web-1")).toBeDefined();
  expect(foundBy.get("web-1")).not.toBe(uncertain);
  expect(foundBy.get("web-1")).toBe(copyUid());
});
