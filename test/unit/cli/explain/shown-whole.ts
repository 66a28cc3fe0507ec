import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { type WholeObjectFacts, wholeObjectStatus } from "../../../../src/cli/explain/whole-object.ts";
import { wholeObjectText } from "../../../../src/cli/status/whole-text.ts";
import type { MemberRecord } from "../../../../src/copies/object-members.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";

const session = recordedSession();
export const SINCE = "2026-01-02T00:00:00Z";
const NOW = Date.parse(SINCE) + 60_000;

type Condition = NonNullable<NonNullable<DelegatedType["status"]>["conditions"]>[number];

export const READY: Condition = {
  type: "Ready",
  status: "True",
  reason: "R",
  message: "fine",
  lastTransitionTime: SINCE,
};

export const IN_STEP: MemberRecord = { member: "west", state: "InStep", generation: 3, health: "True", since: SINCE };

export function type(spec: Partial<DelegatedType["spec"]> = {}, condition: Condition = READY): Stored<DelegatedType> {
  const own = { group: "shop.example.com", version: "v1", kind: "Widget", plural: "widgets", ...spec };
  const name = own.group === "" ? own.plural : `${own.plural}.${own.group}`;
  return { metadata: { name, uid: name, resourceVersion: "1" }, spec: own, status: { conditions: [condition] } };
}

export function widget(members: readonly MemberRecord[], metadata: object = {}): Stored<AnyObject> {
  const annotations = { "legation.dev/members": JSON.stringify(members) };
  const labels = { "legation.dev/whole": "true" };
  const own = { name: "one", namespace: "team", uid: "u", resourceVersion: "1", generation: 3, labels, annotations };
  return { kind: "Widget", metadata: { ...own, ...metadata } };
}

export function shown(facts: Partial<WholeObjectFacts> & Pick<WholeObjectFacts, "object">): string[] {
  const known = { type: type(), told: [], host: host({ west: {}, east: {} }), now: NOW };
  return wholeObjectText(wholeObjectStatus({ ...known, ...facts }), NOW, session.terminal).split("\n");
}
