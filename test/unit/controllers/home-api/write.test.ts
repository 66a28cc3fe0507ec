import { expect, test } from "vitest";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { createApiSecret } from "../../../../src/controllers/home-api/write.ts";
import { marksOf } from "../../../../src/pods/delegate.ts";
import { answering, listing } from "../../../support/builders/answers.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { noting, type Write } from "../writes.ts";

function secretOf(proxyUid: string): Stored<Secret> {
  const marks = marksOf({ namespace: "team", name: "web-0", uid: proxyUid }, HOST);
  return {
    metadata: { namespace: "team", name: "legation-web-0", uid: "there", resourceVersion: "7", ...marks },
    data: { token: "" },
  };
}

test.each<[string, string, Write[]]>([
  [
    "restores the labels and tokens of a Secret that lost its labels, if it is still the same",
    "uid-1",
    [demanding("there")],
  ],
  ["leaves a Secret of another pod alone", "uid-0", []],
])("%s", async (_, owner, expected) => {
  const writes: Write[] = [];
  const client = fakeClient({
    cluster: "west",
    create: () => Promise.reject(kubeError("AlreadyExists", "already exists", { resource: "secrets" })),
    list: listing(() => [secretOf(owner)]),
    patch: answering(secretOf(owner)),
  });
  const west = member("west", noting(client, writes));
  await createApiSecret(west, secretOf("uid-1"), new AbortController().signal);
  expect(writes).toMatchObject(expected);
  expect(writes).toHaveLength(expected.length);
});

test("does not count a Secret as written that was there and has gone", async () => {
  const error = kubeError("AlreadyExists", "already exists", { resource: "secrets" });
  const client = fakeClient({
    cluster: "west",
    create: () => Promise.reject(error),
    list: listing([]),
  });
  const write = createApiSecret(member("west", client), secretOf("uid-1"), new AbortController().signal);
  await expect(write).rejects.toBe(error);
});

function demanding(uid: string): Write {
  return { to: "west patch", demands: { uid } };
}
