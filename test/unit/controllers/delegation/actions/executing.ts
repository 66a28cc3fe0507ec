import { type Mock, vi } from "vitest";
import {
  type KubeObject,
  type OwnerReference,
  objectKey,
  type Pod,
  type Stored,
} from "../../../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../../../src/clusters/delegate-requests.ts";
import type { Member } from "../../../../../src/clusters/member.ts";
import { Executor } from "../../../../../src/controllers/delegation/actions/execute.ts";
import type { Action, ActionOf } from "../../../../../src/controllers/delegation/decision/decision.ts";
import type { ControllerEvents } from "../../../../../src/controllers/events.ts";
import { RefusedWrites } from "../../../../../src/controllers/refused-writes.ts";
import { RestoredHost } from "../../../../../src/controllers/restored-host.ts";
import type { DependencyKind } from "../../../../../src/copies/dependencies.ts";
import type { ClusterClient, WriteOptions } from "../../../../../src/kube/client.ts";
import type { KubeError, KubeErrorCode } from "../../../../../src/kube/errors.ts";
import type { Resource } from "../../../../../src/kube/resources.ts";
import type { Needs } from "../../../../../src/placement/needs.ts";
import type { HomeApi } from "../../../../../src/pods/home-api.ts";
import { Events } from "../../../../../src/runtime/event-bus.ts";
import type { NewEvent } from "../../../../../src/runtime/event-recorder.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { RequestMutations } from "../../../../../src/scheduling/request-mutations.ts";
import { Reservations } from "../../../../../src/scheduling/reservations.ts";
import { Retries } from "../../../../../src/scheduling/retries/retries.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { candidateNamed } from "../../../../support/builders/candidate.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { delegates, member, withState } from "../../../../support/builders/member.ts";
import { type FakeMethods, fakeClient } from "../../../../support/clients/fake-client.ts";
import { placementOver } from "../../../scheduling/placement-over.ts";
import { registryOf } from "../../fleet.ts";
import { noting, type Write } from "../../writes.ts";

const log = createLogger({ level: "silent" });
const NO_API: HomeApi = { state: "unknown", message: "" };

type ObjectMethods = Required<FakeMethods>;

/** An action; a create comes with the delegate that is derived from the proxy. */
export type TestAction =
  | Exclude<Action, { readonly type: "create" }>
  | (ActionOf<"create"> & { readonly delegate: Pod });

/** Answers of the clusters by kind of request; a request without an answer fails the test. */
export interface Answers {
  readonly create?: (
    resource: Resource<KubeObject>,
    object: KubeObject,
    options: WriteOptions,
  ) => ReturnType<ObjectMethods["create"]>;
  readonly find?: () => Promise<Stored<Pod> | undefined>;
  readonly createSubresource?: () => Promise<unknown>;
  readonly patch?: ObjectMethods["patch"];
  readonly remove?: () => Promise<unknown>;
  readonly controllersOf?: () => Promise<OwnerReference[]>;
  readonly createIn?: <T>(create: (isNew: boolean) => Promise<T>) => Promise<T>;
  /** Default: a proxy without a node. */
  readonly proxyOf?: () => Stored<Pod>;
  readonly confirmLease?: () => Promise<boolean>;
  /** Namespaces where delegates have just ended. */
  readonly endedIn?: readonly string[];
  /** Reports that the pod's dependencies are in the member; a list answers one call after the other. */
  readonly prepared?: boolean | boolean[];
  /** The object that the member reported as missing was copied there. */
  readonly copied?: boolean;
  readonly needs?: () => Needs;
}

export function failure(code: KubeErrorCode, detail: string, cause?: string): KubeError {
  const target = { cluster: "west", verb: "create", resource: "pods", namespace: "team", objectName: "web-0" };
  return kubeError(code, detail, {
    ...target,
    ...(cause === undefined ? {} : { details: { kind: "pods", causes: [{ type: cause }] } }),
  });
}

function unexpected(): Promise<never> {
  return Promise.reject(new Error("nobody should ask"));
}

/** Returns a client that gives the answers, and notes its writes. */
function clientOf(cluster: string, answers: Answers, writes: Write[]): ClusterClient {
  const { create, find, createSubresource, patch, remove } = answers;
  const client = fakeClient({
    cluster,
    create: (resource, object, options = {}) => (create ?? unexpected)(resource, object, options),
    find: find ?? unexpected,
    createSubresource: createSubresource ?? unexpected,
    patch: patch ?? unexpected,
    delete: async () => {
      await (remove ?? unexpected)();
    },
  });
  return noting(client, writes);
}

interface Executing {
  readonly clock: { now: number };
  readonly members: Record<"west" | "east", Member>;
  readonly memories: Memories;
  readonly reservations: Reservations;
  readonly told: unknown[];
  /** Requests in the order in which they were sent. */
  readonly writes: Write[];
  readonly onRoom: Mock<() => void>;
  /** Calls for full quotas, and for accepted pods. */
  readonly quotas: { readonly refused: Mock<() => void>; readonly accepted: Mock<() => void> };
  readonly onMissing: Mock<(delegate: Pod, member: string, kind: DependencyKind) => boolean>;
  readonly executor: Executor;
  execute(action: TestAction): ReturnType<Executor["execute"]>;
}

/** Returns an executor over a host and the members `west` and `east`, which all give the same answers. */
export function executorOf(answers: Answers): Executing {
  const {
    controllersOf,
    createIn,
    proxyOf,
    confirmLease,
    prepared = true,
    copied = false,
    needs,
    endedIn = [],
  } = answers;
  const clock = { now: 1_000_000 };
  let forged: Pod | undefined;
  const writes: Write[] = [];
  const newMember = (name: string): Member =>
    member(name, clientOf(name, answers, writes), {
      requests: new DelegateRequests(),
      nodesVersion: 1,
      roomVersion: "1.0",
      probed: { reachable: true, version: "v1.30.0" },
      delegates: delegates({ endedLately: (namespace) => endedIn.includes(namespace) }),
      candidate: () => candidateNamed(name),
    });
  const members = { west: newMember("west"), east: newMember("east") };
  const memories = new Memories({ now: () => clock.now });
  const told: unknown[] = [];
  const onRoom = vi.fn<() => void>();
  const events = new Events<ControllerEvents>();
  events.on("roomFreed", onRoom);
  const quotas = { refused: vi.fn<() => void>(), accepted: vi.fn<() => void>() };
  const onMissing = vi.fn<(delegate: Pod, member: string, kind: DependencyKind) => boolean>(() => copied);
  const now = { now: () => clock.now, wall: () => clock.now };
  const registry = registryOf(Object.values(members));
  const retries = new Retries({ registry, memories, clock: now });
  const mutations = new RequestMutations();
  const reservations = new Reservations({ registry, memories, retries, mutations, clock: now });
  const recorder = { record: (_about: object, { reason, message }: NewEvent) => void told.push({ reason, message }) };
  const proxies = { get: proxyOf ?? (() => undefined) };
  const { placementState } = placementOver([], { namespaces: new Store(), homeApi: () => NO_API });
  const state = {
    placementState: withState(placementState, { memories, reservations, retries, delegateIn: () => forged }),
    proxies,
    waiting: { since: () => undefined, quotas },
  };
  const options = {
    events,
    refusedWrites: new RefusedWrites({ writes: memories.writes, recorder, events }),
    identity: { id: "host-id", name: "cern" },
    clock: now,
    host: clientOf("host", answers, writes),
    recorder,
    registry,
    preparer: {
      prepare: () => (typeof prepared === "boolean" ? prepared : prepared.shift() === true),
      needs: () => needs?.(),
      onMissing,
    },
    kept: { keeps: () => false },
    restoredHost: new RestoredHost({
      election: { leaderless: [], confirm: confirmLease ?? (async () => true) },
      log: createLogger({ level: "silent" }),
    }),
    memberNamespaces: {
      createIn: <T>(_member: object, _name: string, _signal: AbortSignal, make: (isNew: boolean) => Promise<T>) =>
        createIn === undefined ? make(false) : createIn(make),
      controllersOf: controllersOf ?? unexpected,
    },
  };
  const executor = new Executor(options, state);
  const execute: Executing["execute"] = (action) => {
    if (action.type === "create") forged = action.delegate;
    return executor.execute(action, {
      key: objectKey({ namespace: "team", name: "web-0" }),
      signal: new AbortController().signal,
      heardAt: clock.now,
      log,
    });
  };
  return { clock, members, memories, reservations, told, writes, onRoom, quotas, onMissing, executor, execute };
}
