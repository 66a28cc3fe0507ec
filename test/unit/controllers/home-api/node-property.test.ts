import fc from "fast-check";
import { expect, test } from "vitest";
import { RENEW_AT_ANNOTATION, virtualNodeName } from "../../../../src/api/keys.ts";
import type { Pod, Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/home-api/decide.ts";
import type { DelegateView, IssueAction } from "../../../../src/controllers/home-api/model.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import { mountsApiSecret } from "../../../../src/pods/home-api.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";

const HOST = { id: "host-id", name: "cern" };
const HOME = { mode: "host", address: { host: "10.0.0.1", port: "443" } } as const;
const LIFE_MS = 60 * 60_000;
const MEMBERS = ["west", "east"] as const;
type Member = (typeof MEMBERS)[number];

const volumes = [{ name: "kube-api-access-x", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }];

/** A Secret as its member has it, and the node that its token names. */
interface Token {
  readonly proxyUid: string;
  readonly delegateUid: string;
  readonly renewAt: number;
  readonly node: string | undefined;
}

/** A host with one pod name, two members, and a controller whose stores may lag. */
class World {
  proxy = proxyOf(1);
  readonly delegates = new Map<Member, Stored<Pod>>();
  readonly tokens = new Map<Member, Token>();
  now = 0;
  #seen: { readonly proxy: Stored<Pod>; readonly delegates: ReadonlyMap<Member, Stored<Pod>> };
  #uids = 1;

  constructor() {
    this.#seen = { proxy: this.proxy, delegates: new Map() };
  }

  delegate(member: Member): void {
    const { metadata, spec } = toDelegate(this.proxy, HOST, HOME);
    const uid = `delegate-${++this.#uids}`;
    this.delegates.set(member, pod({ uid, metadata: { ...metadata, uid }, ...(spec && { spec }) }));
  }

  removeDelegate(member: Member): void {
    this.delegates.delete(member);
    // The member's garbage collector.
    this.tokens.delete(member);
  }

  /** An overflow pod is bound before it has a delegate; the API server refuses a second Binding. */
  bind(member: Member): void {
    const { spec } = this.proxy;
    if (spec?.nodeName !== undefined) return;
    this.proxy = { ...this.proxy, spec: { containers: [], ...spec, nodeName: virtualNodeName(member) } };
  }

  replaceProxy(): void {
    this.proxy = proxyOf(++this.#uids);
  }

  catchUp(): void {
    this.#seen = { proxy: this.proxy, delegates: new Map(this.delegates) };
  }

  reconcile(): void {
    const { proxy, delegates } = this.#seen;
    const views = [...delegates].map(([member, delegate]): DelegateView => {
      const secret = this.#secretOf(member, proxy.metadata.uid);
      return { member, readable: true, delegate, ...(secret === undefined ? {} : { secret }) };
    });
    const { actions } = decide({ proxy, delegates: views }, this.now);
    for (const action of actions) if (action.type === "issue") this.#issue(action);
  }

  #issue({ member, proxy, delegateUid }: IssueAction): void {
    const { metadata, spec } = this.proxy;
    // TokenRequest: the API server compares the uid, and reads the pod's present node.
    if (metadata.uid !== proxy.metadata.uid) return;
    const at = MEMBERS.find((name) => name === member);
    if (at === undefined || this.delegates.get(at)?.metadata.uid !== delegateUid) return;
    const renewAt = this.now + LIFE_MS;
    this.tokens.set(at, { proxyUid: metadata.uid, delegateUid, renewAt, node: spec?.nodeName });
  }

  #secretOf(member: Member, proxyUid: string): Stored<Secret> | undefined {
    const token = this.tokens.get(member);
    if (token?.proxyUid !== proxyUid) return undefined;
    const annotations = { [RENEW_AT_ANNOTATION]: new Date(token.renewAt).toISOString() };
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "web-0", uid: token.delegateUid }];
    return { metadata: { name: "s", uid: "secret-uid", resourceVersion: "1", annotations, ownerReferences } };
  }
}

function proxyOf(uid: number): Stored<Pod> {
  return proxyPod({ uid: `proxy-${uid}`, spec: { volumes } });
}

interface Step {
  readonly name: string;
  readonly run: (world: World) => void;
}

const member = fc.constantFrom(...MEMBERS);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ name: "catch up", run: (world: World) => world.catchUp() }) },
  { weight: 4, arbitrary: fc.constant({ name: "reconcile", run: (world: World) => world.reconcile() }) },
  {
    weight: 3,
    arbitrary: member.map((at) => ({ name: `delegate in ${at}`, run: (world: World) => world.delegate(at) })),
  },
  { weight: 2, arbitrary: member.map((at) => ({ name: `bind to ${at}`, run: (world: World) => world.bind(at) })) },
  {
    weight: 1,
    arbitrary: member.map((at) => ({ name: `no delegate in ${at}`, run: (world: World) => world.removeDelegate(at) })),
  },
  { weight: 1, arbitrary: fc.constant({ name: "another proxy", run: (world: World) => world.replaceProxy() }) },
  {
    weight: 1,
    arbitrary: fc.constant({
      name: "an hour passes",
      run: (world: World) => {
        world.now += LIFE_MS;
      },
    }),
  },
);
const steps = fc.array(
  step.map((one) => Object.assign(one, { toString: () => one.name })),
  { maxLength: 40 },
);

test("names its member's virtual node in every token, however late events arrive, and gives a bound pod's delegate one", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const world = new World();
      for (const { run } of all) {
        run(world);
        for (const [at, { node }] of world.tokens) expect(node).toBe(virtualNodeName(at));
      }
      world.catchUp();
      world.reconcile();
      for (const [at, delegate] of world.delegates) {
        if (world.proxy.spec?.nodeName !== virtualNodeName(at)) continue;
        if (!mountsApiSecret(delegate, world.proxy.metadata.uid)) continue;
        expect(world.tokens.get(at)?.delegateUid).toBe(delegate.metadata.uid);
      }
    }),
    { numRuns: 500 },
  );
});
