import { expect, onTestFinished, test } from "vitest";
import type { Member } from "../../../../../src/clusters/member.ts";
import { ImportController } from "../../../../../src/controllers/services/imports/controller.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import { listing, writing } from "../../../../support/builders/answers.ts";
import { serving } from "../../../../support/builders/discovery.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { member } from "../../../../support/builders/member.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { registryOf, surroundings } from "../../fleet.ts";
import { quietClient } from "../../quiet-client.ts";

const raw = serving({
  group: "multicluster.x-k8s.io",
  versions: { v1beta1: ["serviceexports", "serviceimports"] },
});
const metadata = { name: "web", namespace: "team", uid: "web", resourceVersion: "1" };
const ofHost: Readonly<Record<string, object>> = {
  namespaces: { metadata: { name: "team", uid: "team", resourceVersion: "1" } },
  serviceexports: { metadata: { ...metadata, creationTimestamp: "2026-01-01T00:00:00Z" } },
  services: { metadata, spec: { selector: { app: "web" }, ports: [{ port: 80 }] } },
};

test("a member that joins anew is asked at once for an import whose namespace it lacked before it left", async () => {
  const clock = new FakeClock();
  let creates = 0;
  const joinedMember = (): Member =>
    member(
      "west",
      quietClient([], {
        cluster: "west",
        raw,
        ...writing(({ plural }) => {
          creates += 1;
          throw kubeError("NotFound", 'namespaces "team" not found', { verb: "create", resource: plural });
        }),
      }),
    );
  const joined = [joinedMember()];
  const around = surroundings(joined, clock);
  const controller = new ImportController({
    ...around,
    registry: {
      members: () => [...joined],
      member: (name) => registryOf(joined).member(name),
    },
    host: quietClient([], { raw, list: listing((plural) => [ofHost[plural] ?? []].flat()), ...writing(() => {}) }),
    networks: () => ({ host: "corp", members: new Map([["west", "corp"]]) }),
    nodes: new Store(),
  });
  onTestFinished(() => controller.stop());
  controller.start();
  await clock.advance(60_000);
  expect(creates).toBe(1);
  joined.pop();
  around.events.emit("cluster", "west");
  joined.push(joinedMember());
  around.events.emit("cluster", "west");
  await clock.advance(1_000);
  expect(creates).toBe(2);
});
