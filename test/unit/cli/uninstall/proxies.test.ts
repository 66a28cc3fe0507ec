import { describe, expect, test } from "vitest";
import { INTERNAL_ANNOTATIONS } from "../../../../src/api/keys.ts";
import { releaseProxy } from "../../../../src/cli/uninstall/proxies.ts";
import { fakeClient } from "../client.ts";

const { signal } = new AbortController();

/** The annotations that are taken off a finished proxy. */
async function takenOff(annotations: Readonly<Record<string, string>>): Promise<string[]> {
  const bodies: { metadata: { annotations: object } }[] = [];
  const patch = async (_resource: unknown, _ref: unknown, { body }: { body: unknown }): Promise<never> => {
    bodies.push(body as never);
    return undefined as never;
  };
  const metadata = { name: "web", namespace: "shop", uid: "u", resourceVersion: "1", annotations };
  await releaseProxy(fakeClient({ patch }), { metadata, status: { phase: "Succeeded" } }, signal);
  return bodies.flatMap(({ metadata }) => Object.keys(metadata.annotations));
}

describe("a finished proxy that is let go", () => {
  const OWN_COST = "legation.dev/deletion-cost";
  const COST = "controller.kubernetes.io/pod-deletion-cost";

  test("keeps nothing that Legation wrote on it", async () => {
    expect(await takenOff({})).toEqual(expect.arrayContaining([...INTERNAL_ANNOTATIONS]));
    expect(await takenOff({ [OWN_COST]: "-2", [COST]: "-2" })).toEqual(expect.arrayContaining([OWN_COST, COST]));
  });

  test.each([
    ["its author's", { [COST]: "7" }],
    ["changed by somebody", { [OWN_COST]: "-2", [COST]: "7" }],
  ])("keeps a deletion cost that is %s", async (_whose, annotations) => {
    expect(await takenOff(annotations)).not.toContain(COST);
  });
});
