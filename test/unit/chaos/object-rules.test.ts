import { describe, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { clusters } from "../../../src/api/resources.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { delegatedKind } from "../../../src/copies/objects.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { KINDS, type Kind, whole } from "../../chaos/objects/kinds.ts";
import { newLedger } from "../../chaos/objects/ledger.ts";
import { restlessObjects } from "../../chaos/objects/rest.ts";
import type { Scene } from "../../chaos/scene.ts";
import { HOST } from "../../support/builders/claim.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

type Place = "host" | "west" | "east";
type State = Record<Place, AnyObject[]>;

const IN_STEP = ["east", "west"].map((member) => ({ member, state: "InStep", generation: 3, since: "" }));
const STATUS = {
  observedGeneration: 3,
  seen: 1,
  phase: "Up",
  readyReplicas: 8,
  conditions: [{ type: "Ready", status: "True" }],
};

/** Returns an object that all members have, with everything as it has to be. */
function atRest(kind: Kind): State {
  const { plural, group } = KINDS[kind];
  const type = { metadata: { name: plural }, spec: { group, version: "v1", kind, plural } };
  const annotations = { "legation.dev/members": JSON.stringify(IN_STEP) };
  const made = whole(kind, { name: "one", content: { version: 1 }, annotations });
  const metadata = {
    ...made.metadata,
    name: "one",
    namespace: "team",
    uid: "u1",
    resourceVersion: "7",
    generation: 3,
    labels: { "legation.dev/whole": "true" },
  };
  const object = { ...made, metadata, status: STATUS };
  const copy = toCopy(
    delegatedKind(type, (text) => text),
    object,
    HOST,
  );
  const status = { ...STATUS, observedGeneration: 1, readyReplicas: 4 };
  const stored = (uid: string): AnyObject => ({ ...copy, status, metadata: { ...copy.metadata, uid, generation: 1 } });
  return { host: [object], west: [stored("w1")], east: [stored("e1")] };
}

async function problems(
  state: State,
  change: (scene: Scene) => void = () => {},
  kind: Kind = "Widget",
): Promise<string[]> {
  const client = (place: Place) =>
    fakeClient({
      list: async ({ plural }: Resource<AnyObject>) => ({
        items: plural === KINDS[kind].plural ? state[place] : [],
        ...(plural === clusters.plural ? { items: [] } : {}),
      }),
    });
  const clients = { host: client("host"), west: client("west"), east: client("east") };
  const scene = { clients, namespace: "team", kinds: [kind], ledger: newLedger() } as unknown as Scene;
  change(scene);
  return restlessObjects(scene, false);
}

describe("whole objects at rest", () => {
  const state = atRest("Widget");
  const [object = {}] = state.host;
  const [copy = {}] = state.west;
  const changed = (fields: object, metadata: object = {}): AnyObject => ({
    ...copy,
    ...fields,
    metadata: { ...copy.metadata, ...metadata },
  });
  const host = (fields: object, metadata: object = {}): Partial<State> => ({
    host: [{ ...object, ...fields, metadata: { ...object.metadata, ...metadata } }],
  });

  test("have no problem when everything is as it has to be", async () => {
    expect(await problems(state)).toEqual([]);
  });

  test.each<[string, Partial<State>, RegExp]>([
    ["a member without the copy", { west: [] }, /west has no copy/],
    ["a copy that was left behind", { host: [] }, /left behind in west/],
    ["a copy with other content", { west: [changed({ spec: { version: 2 } })] }, /in west \{"version":2\}/],
    ["a copy of an earlier object", host({}, { uid: "u2" }), /left behind in west/],
    [
      "a copy in a member that is not to have it",
      host({}, annotated({ "legation.dev/clusters": "east" })),
      /not to have it/,
    ],
    [
      "parts that do not add up",
      host({}, annotated({ "legation.dev/scheduling-preferences": "{}" })),
      /divided as 4 and 4/,
    ],
    ["a status that was lost", host({ status: {} }), /its status is/],
    ["a status that lags", host({ status: { ...STATUS, observedGeneration: 2 } }), /its status is/],
    ["a record that lags", host({}, { generation: 4 }), /generation 4, of west on record 3/],
    ["an object that is still being deleted", host({}, { deletionTimestamp: "now" }), /still being deleted/],
    [
      "an object that is still being taken back",
      host({}, { labels: { "legation.dev/whole": "false" } }),
      /being taken back/,
    ],
    [
      "a finalizer that was left",
      { ...host({}, { labels: {}, finalizers: ["legation.dev/whole"] }), west: [], east: [] },
      /has the finalizer/,
    ],
  ])("show %s", async (_, parts, expected) => {
    expect((await problems({ ...state, ...parts })).join("; ")).toMatch(expected);
  });

  test("show a copy that a member was to keep", async () => {
    const kept = await problems(state, ({ ledger }) =>
      ledger.kept.push({ member: "west", kind: "Widget", name: "two" }),
    );
    expect(kept).toEqual(["Widget two: west was to keep it"]);
  });

  test("show a field that a client took and that was not put back, unless it was taken thrice, or stays by its type", async () => {
    const theirs = changed({ spec: { ...(copy.spec as object), taken: "theirs" } });
    const of = (kind: Kind) => ({ member: "west", kind, name: "one", uid: "w1" }) as const;
    const wrong = expect.stringContaining("the field of another manager is theirs in west");
    const taking = (times: number) => (scene: Scene) => scene.ledger.taken.push(...Array(times).fill(of("Widget")));
    expect(await problems({ ...state, west: [theirs] }, taking(2))).toEqual([wrong]);
    expect(await problems({ ...state, west: [theirs] }, taking(3))).toEqual([]);
    const engine = atRest("Engine");
    const [one = {}] = engine.host;
    const annotations = { ...one.metadata?.annotations, "legation.dev/cluster": "west" };
    const host = [{ ...one, metadata: { ...one.metadata, annotations } }];
    const stays = await problems({ ...engine, host }, ({ ledger }) => ledger.taken.push(of("Engine")), "Engine");
    expect(stays.join()).toContain("the field of another manager is ours in west");
  });

  function annotated(annotations: object): object {
    return { annotations: { ...object.metadata?.annotations, ...annotations } };
  }
});
