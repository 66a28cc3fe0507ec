import { objectKey } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { refusalOf } from "../../../../src/controllers/api-refusal.ts";
import { Executor as ClaimExecutor } from "../../../../src/controllers/claims/execute.ts";
import { CopyExecutor } from "../../../../src/controllers/copying/executor.ts";
import { copyKey } from "../../../../src/controllers/copying/model.ts";
import { makeCopy } from "../../../../src/controllers/copying/writer.ts";
import { forwardRefusal } from "../../../../src/controllers/delegation/actions/forward-messages.ts";
import { dependencyRefusal } from "../../../../src/controllers/overflow/member-refusal.ts";
import { DEPENDENCIES } from "../../../../src/copies/dependencies.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger, type Logger } from "../../../../src/telemetry/logger.ts";
import { servingExports } from "../../../support/builders/discovery.ts";
import { member } from "../../../support/builders/member.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { NOTHING_ELSE } from "../claims/executor-options.ts";
import { namespacesThere, registryOf } from "../fleet.ts";

/**
 * The result of a failed write. `refused`: it is reported, or others are tried, and the same write is held; `settled`: nothing
 * is left to do, or the watch decides; `tried again`: the reconcile fails, and is repeated.
 */
export type Outcome = "refused" | "settled" | "tried again";

/** A place where errors of writes are classified: writes once, with this error as the response. */
export type Site = (error: KubeError) => Promise<Outcome>;

export const HOST = { id: "host-id", name: "cern" };
export const log: Logger = createLogger({ level: "silent" });
const signal = new AbortController().signal;
const clock = { now: () => 0, wall: () => 0 };
const REF = { member: "west", namespace: "team", name: "web" } as const;
const object = { metadata: { namespace: "team", name: "web", uid: "uid-1", resourceVersion: "1" } };

/** Returns an empty member whose writes all fail with the error. */
function memberFailing(error: KubeError): Member {
  const fail = async () => {
    throw error;
  };
  const list = async () => ({ items: [] });
  const client = fakeClient({ create: fail, patch: fail, delete: fail, list, raw: servingExports("v1beta1") });
  return member("west", client);
}

const host = fakeClient({ create: async () => ({}) });

async function outcomeOf(write: Promise<unknown>, isRefused: () => boolean): Promise<Outcome> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return isRefused() ? "refused" : "tried again";
  }
  return isRefused() ? "refused" : "settled";
}

/** A copy that is created in a member. */
export const aNewCopy: Site = async (error) => {
  const spec = { namespaces: namespacesThere, hostId: HOST.id, resource: configMaps, ref: REF, object, signal };
  const made = makeCopy({ ...spec, member: memberFailing(error) });
  let type = "";
  return outcomeOf(
    made.then((result) => {
      type = result.type;
    }),
    () => type === "refused",
  );
};

/** An object in the place of a copy, before a pod overflows. */
export const whatIsInTheWay: Site = async (error) => {
  const envFrom = [{ configMapRef: { name: "settings" } }];
  const waiting = pod({ spec: { containers: [{ name: "main", image: "work:1", envFrom }] } });
  const west = member("west", fakeClient({ list: () => Promise.reject(error) }));
  let refusal: unknown;
  return outcomeOf(
    dependencyRefusal(waiting, { host, hostId: HOST.id, member: west, signal }).then((found) => {
      refusal = found;
    }),
    () => refusal !== undefined,
  );
};

/** A copy that is changed. */
export const aChangedCopy: Site = async (error) => {
  const ref = { ...REF, kind: "ConfigMap" };
  const key = copyKey(ref);
  const executor = new CopyExecutor({
    kinds: new Map([["ConfigMap", DEPENDENCIES.ConfigMap]]),
    identity: HOST,
    registry: registryOf([memberFailing(error)]),
    memberNamespaces: namespacesThere,
    recorder: { record: () => {} },
    clause: "",
    isSameContent: () => false,
    onChange: () => {},
    clock,
  });
  return outcomeOf(
    executor.execute({ type: "patch", ref, copy: object, source: object }, { key, signal, heardAt: 0, log }),
    () => executor.refusals.of(key) !== undefined,
  );
};

/** A claim that is to grow. */
export const aLargerClaim: Site = async (error) => {
  let refused = false;
  const onRefused = (): void => {
    refused = true;
  };
  const executor = new ClaimExecutor({
    ...NOTHING_ELSE,
    registry: registryOf([memberFailing(error)]),
    onRefused,
    guard: new WriteGuard({ clock }),
    clock,
  });
  const action = { type: "grow", member: "west", uid: "uid-1", size: "2Gi" } as const;
  const context = { key: objectKey(object.metadata), signal, heardAt: 0, log };
  return outcomeOf(executor.execute(action, context), () => refused);
};

/** A change of a proxy that is forwarded to its delegate. */
export const aForwardedChange: Site = async (error) => {
  const patch = { body: { metadata: { uid: "uid-1" } } };
  return forwardRefusal("west", patch, error) === undefined ? "tried again" : "refused";
};

/** A delegate that is created. */
export const aNewDelegate: Site = async (error) => (refusalOf(error) === undefined ? "tried again" : "refused");
