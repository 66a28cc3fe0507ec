import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import { objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { SourceWriter, withFinalizer, withoutFinalizer } from "../../../../src/controllers/whole/source-writer.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { serving } from "../../../support/builders/discovery.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { registryOf } from "../fleet.ts";

const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" };
const type: DelegatedType = { metadata: { name: "widgets.example.com" }, spec };
const kind = delegatedKind(type, (text) => text);
const source: Stored<AnyObject> = {
  metadata: { namespace: "team", name: "one", uid: "u1", resourceVersion: "7" },
  spec: { size: 1 },
};
const made = toCopy(kind, source, HOST);
const copy = {
  ...made,
  metadata: { ...made.metadata, namespace: "team", name: "one", uid: "m1", resourceVersion: "3" },
};

/** A member's answer to the question for a copy. */
type Answer = "copy" | "none" | KubeErrorCode;

/** Returns a writer, and `west`, which gives these answers in turn; it serves Widgets unless `serves` says otherwise. */
function writing(answers: readonly Answer[] = [], serves = true) {
  const remaining = [...answers];
  const asked: string[] = [];
  const told: string[] = [];
  const clock = new FakeClock();
  const client = fakeClient({
    list: async ({ plural }) => {
      asked.push(plural);
      const answer = remaining.shift() ?? "none";
      if (answer === "copy" || answer === "none") return { items: answer === "copy" ? [copy] : [] };
      throw kubeError(answer, "no", { verb: "list", resource: "widgets.example.com" });
    },
    raw: serves ? serving({ group: spec.group, versions: { v1: ["widgets"] } }) : serving(),
  });
  const patches: (() => Promise<object>)[] = [];
  const writer = new SourceWriter(kind, {
    host: fakeClient({ patch: async () => (await patches.shift()?.()) ?? {} }),
    identity: HOST,
    registry: registryOf([member("west", client)]),
    recorder: { record: (_about, { reason, message }) => void told.push(`${reason}: ${message}`) },
    guard: new WriteGuard({ clock }),
  });
  const context = { key: objectKey(source.metadata), signal: new AbortController().signal };
  return {
    asked,
    told,
    clock,
    confirm: (members: readonly string[] = ["west"]) => writer.confirmAbsence(source, members, context),
    /** Sends a patch that the host answers so. */
    patch: (answer: () => Promise<object>, isQuiet = false) => {
      patches.push(answer);
      return writer.patch(source, { type: "merge", body: {} }, { isQuiet });
    },
  };
}

describe("an object that is to be let go", () => {
  test.each<[string, readonly Answer[], boolean]>([
    ["goes once its member has no copy", ["none"], true],
    ["stays while its member has one", ["copy"], false],
  ])("%s", async (_, answers, expected) => {
    expect(await writing(answers).confirm()).toBe(expected);
  });

  test("stays while its member is disconnected, which says nothing of its copy", async () => {
    const { confirm, asked } = writing();
    expect(await confirm(["west", "east"])).toBe(false);
    expect(asked).toEqual(["widgets"]);
  });

  test("goes if its member lacks the definition, and stays if the member only says so for a moment", async () => {
    expect(await writing(["NotFound"], false).confirm()).toBe(true);
    await expect(writing(["NotFound"], true).confirm()).rejects.toMatchObject({ code: "NotFound" });
  });

  test("has its author told of a member that goes on failing, and not at the first failure", async () => {
    const { confirm, told, clock } = writing(["ServerError", "ServerError"]);
    await expect(confirm()).rejects.toMatchObject({ code: "ServerError" });
    expect(told).toEqual([]);
    await clock.advance(11_000);
    await expect(confirm()).rejects.toMatchObject({ code: "ServerError" });
    expect(told).toEqual([expect.stringMatching(/^DeletionNotConfirmed: west: .* its API server does not say: no$/)]);
  });

  test.each<Answer>(["copy", "none"])("counts a member's failures anew after an answer: %s", async (answer) => {
    const { confirm, told, clock } = writing(["ServerError", answer, "ServerError"]);
    await expect(confirm()).rejects.toMatchObject({ code: "ServerError" });
    await clock.advance(6_000);
    await confirm();
    await clock.advance(6_000);
    await expect(confirm()).rejects.toMatchObject({ code: "ServerError" });
    expect(told).toEqual([]);
  });
});

describe("a write on the host", () => {
  const version = (resourceVersion: string) => async () => ({ metadata: { resourceVersion } });
  const failing = (code: KubeErrorCode) => () => Promise.reject(kubeError(code, "denied", { cluster: "host" }));

  test.each([
    ["another version is stored: done", version("8"), "done"],
    ["the version stays: unchanged", version("7"), "unchanged"],
    ["the object has changed since: Conflict", failing("Conflict"), "Conflict"],
    ["the object is gone: NotFound", failing("NotFound"), "NotFound"],
  ] as const)("has an outcome when %s", async (_, answer, expected) => {
    expect(await writing().patch(answer)).toBe(expected);
  });

  test.each<[string, KubeErrorCode, boolean, readonly string[]]>([
    [
      "tells the author of a lasting refusal",
      "Unprocessable",
      false,
      ["Refused: this cluster refuses a change: denied"],
    ],
    ["leaves a lasting refusal to the caller that asks for it", "Unprocessable", true, []],
    ["tells nothing of a failure that may pass", "ServerError", false, []],
  ])("rejects and %s", async (_, code, isQuiet, expected) => {
    const { patch, told } = writing();
    await expect(patch(failing(code), isQuiet)).rejects.toMatchObject({ code });
    expect(told).toEqual(expected);
  });
});

test("the finalizer of whole objects is added once, and taken away without the others", () => {
  const finalizers = ["example.com/other", "legation.dev/whole"];
  expect(withFinalizer({ finalizers: ["example.com/other"] })).toEqual(finalizers);
  expect(withFinalizer({ finalizers })).toEqual(finalizers);
  expect(withoutFinalizer({ finalizers })).toEqual(["example.com/other"]);
  expect([withFinalizer({}), withoutFinalizer({})]).toEqual([["legation.dev/whole"], []]);
});
