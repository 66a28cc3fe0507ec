import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import {
  credentialsOf,
  credentialsTroubles,
  type MemberCredentials,
  readCredentials,
} from "../../../../src/cli/explain/credentials.ts";
import { credentialsWords } from "../../../../src/cli/explain/credentials-words.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { host } from "../simulation/host.ts";

const JOINED = "2026-01-01T00:00:00Z";
const ENDS = "2026-01-31T00:00:00Z";
const ANNOTATION = "legation.dev/token-expires";

function cluster(agent = false): Stored<Cluster> {
  const [west] = host({ west: { spec: agent ? { agent: {} } : {} } }).clusters;
  if (west === undefined) throw new Error("there is a member");
  return west;
}

function secret(annotations: Readonly<Record<string, string>>, time?: string): Parameters<typeof credentialsOf>[1] {
  const fieldsV1 = { "f:metadata": { "f:annotations": { [`f:${ANNOTATION}`]: {} } } };
  const label = { manager: "kubectl", fieldsV1: { "f:metadata": { "f:labels": { "f:a": {} } } }, time: ENDS };
  return {
    metadata: {
      name: "member-west",
      uid: "s",
      resourceVersion: "1",
      annotations,
      ...(time === undefined ? {} : { managedFields: [{ manager: "node", fieldsV1, time }, label] }),
    },
  };
}

describe("what is on record of a member's credentials", () => {
  test.each<[string, MemberCredentials, Partial<MemberCredentials>, string]>([
    [
      "when the token was made, ends, and is renewed",
      credentialsOf(cluster(), secret({ [ANNOTATION]: ENDS }, JOINED)),
      { state: "renewed", expires: ENDS, since: JOINED },
      `its token is in Secret legation-system/member-west, valid until ${ENDS}, made at ${JOINED}, and renewed at 2026-01-16T00:00:00Z`,
    ],
    [
      "when it ends, where nothing records who wrote it",
      credentialsOf(cluster(), secret({ [ANNOTATION]: ENDS })),
      { state: "renewed", expires: ENDS },
      `its token is in Secret legation-system/member-west, valid until ${ENDS}, and renewed at half of its life`,
    ],
    [
      "that an operator's own have no recorded end",
      credentialsOf(cluster(), secret({})),
      { state: "unrecorded" },
      "its credentials are in Secret legation-system/member-west, which does not record when they end; `legation doctor` reads a token's end",
    ],
    [
      "that no end is recorded by what is no time, such as a template's empty annotation",
      credentialsOf(cluster(), secret({ [ANNOTATION]: "" }, JOINED)),
      { state: "unrecorded" },
      "its credentials are in Secret legation-system/member-west, which does not record when they end; `legation doctor` reads a token's end",
    ],
    [
      "that the agent has not brought any, since the join records its own time",
      credentialsOf(cluster(true), secret({ [ANNOTATION]: "2026-01-01T00:00:00.500Z" }, JOINED)),
      { state: "awaited" },
      "its credentials are to be in Secret legation-system/member-west, and its agent has not brought them yet",
    ],
    [
      "that the Secret is missing",
      credentialsOf(cluster(), undefined),
      { state: "missing" },
      "Secret legation-system/member-west with its credentials is missing",
    ],
  ])("is %s", (_, found, credentials, words) => {
    expect(found).toEqual({ secret: "member-west", ...credentials });
    expect(credentialsWords(found, (at) => at)).toBe(words);
  });

  test("is read from the Secret's metadata alone, and hidden from users who may not read it", async () => {
    const { signal } = new AbortController();
    const asked: unknown[] = [];
    const client = fakeClient({
      list: async ({ kind }, { namespace, fieldSelector, metadataOnly } = {}) => {
        asked.push([kind, namespace, fieldSelector, metadataOnly]);
        return { items: [secret({ [ANNOTATION]: ENDS }, JOINED) ?? {}] };
      },
    });
    expect(await readCredentials(client, cluster(), signal)).toMatchObject({ state: "renewed", expires: ENDS });
    expect(asked).toEqual([["Secret", "legation-system", "metadata.name=member-west", true]]);
    const refusing = fakeClient({ list: () => Promise.reject(kubeError("Forbidden")) });
    expect(await readCredentials(refusing, cluster(), signal)).toEqual({ secret: "member-west", state: "hidden" });
  });
});

test("a token that has ended is a trouble with its remedy, and one that is valid is none", () => {
  const credentials = credentialsOf(cluster(), secret({ [ANNOTATION]: ENDS }, JOINED));
  const at = Date.parse(ENDS);
  expect(credentialsTroubles(cluster(), credentials, at - 1)).toEqual([]);
  expect(credentialsTroubles(cluster(), credentials, at)).toEqual([
    {
      what: "this cluster's token for west has ended",
      since: ENDS,
      remedy: "`legation join west --member-kubeconfig FILE` makes another",
    },
  ]);
  expect(credentialsTroubles(cluster(true), credentials, at)[0]?.remedy).toBe(
    "its agent brings another when it connects",
  );
  expect(credentialsTroubles(cluster(), { secret: "s", state: "hidden" }, at)).toEqual([]);
});
