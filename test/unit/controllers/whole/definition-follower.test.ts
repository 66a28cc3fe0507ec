import { expect, onTestFinished, test, vi } from "vitest";
import type { AnyObject } from "../../../../src/api/delegated-type.ts";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { DefinitionFollower } from "../../../../src/controllers/whole/definition-follower.ts";
import { definitionKind } from "../../../../src/copies/definitions.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { answerOf, listing, writing } from "../../../support/builders/answers.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const NAME = "widgets.example.com";

/** Returns a CustomResourceDefinition whose objects are stored in the version. */
function definition(stored = "v1", metadata: object = {}): KubeObject {
  const versions = [{ name: stored, storage: true, served: true }];
  return { metadata: { name: NAME, uid: "u1", resourceVersion: "1", ...metadata }, spec: { versions } } as KubeObject;
}

/** Returns the copy that west has of the host's definition. */
function copyOf(source: KubeObject): object {
  const made = toCopy(
    definitionKind(NAME, (text) => text),
    answerOf<AnyObject>(source),
    HOST,
  );
  return { ...made, metadata: { ...made.metadata, uid: "m1", resourceVersion: "5" } };
}

/** Starts to follow the host's definition into west, and lets it work. Returns west's writes, and what is told. */
async function following(host: readonly KubeObject[], west: Partial<Pick<ClusterClient, "list">> = {}) {
  const clock = new FakeClock();
  const writes: string[] = [];
  const client = quietClient([], { ...writing(({ verb, name }) => void writes.push(`${verb} ${name}`)), ...west });
  const onChange = vi.fn();
  const follower = new DefinitionFollower(NAME, {
    ...surroundings([member("west", client, { candidate: () => candidateNamed("west") })], clock),
    host: quietClient(host),
    onChange,
  });
  onTestFinished(() => follower.stop());
  const before = follower.problems();
  follower.start();
  await clock.advance(1_000);
  return { follower, before, writes, onChange, clock };
}

test("gives a member the host's definition, and says so once both were read", async () => {
  const { before, follower, writes, onChange } = await following([definition()]);
  expect(before).toBeUndefined();
  expect(writes).toEqual([`create ${NAME}`]);
  expect(follower.problems()).toEqual(["west: it has no CustomResourceDefinition yet"]);
  expect(onChange).toHaveBeenCalled();
});

test("says that the host has no definition, and writes none", async () => {
  const { follower, writes } = await following([]);
  expect(follower.problems()).toEqual([`this cluster has no CustomResourceDefinition ${NAME}`]);
  expect(writes).toEqual([]);
});

test("never deletes a member's definition, whatever the host's becomes", async () => {
  const host = definition("v1", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  const { writes, clock, follower } = await following([host], { list: listing([copyOf(definition())]) });
  await clock.advance(3_600_000);
  expect(writes.filter((write) => write.startsWith("delete"))).toEqual([]);
  expect(follower.problems()).toEqual(["west: this cluster's CustomResourceDefinition is being deleted"]);
});

test("leaves a definition whose objects the member stores in another version", async () => {
  const { writes, follower } = await following([definition("v2")], { list: listing([copyOf(definition("v1"))]) });
  expect(writes).toEqual([]);
  expect(follower.problems()?.[0]).toMatch(/^west: objects are stored there in version v1 and here in v2/);
});

test("says why a member's definitions cannot be read", async () => {
  const list = () => Promise.reject(kubeError("Forbidden", "not yours", { verb: "list" }));
  const { follower } = await following([definition()], { list });
  expect(follower.problems()).toEqual([expect.stringMatching(/^west: its CustomResourceDefinition cannot be read: /)]);
});
