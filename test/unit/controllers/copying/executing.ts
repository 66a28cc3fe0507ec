import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { CopyExecutor } from "../../../../src/controllers/copying/executor.ts";
import { type Action, type CopyKey, copyKey } from "../../../../src/controllers/copying/model.ts";
import { type CopiedKind, toCopy } from "../../../../src/copies/kind.ts";
import type { ServiceObject } from "../../../../src/copies/services.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { everyKind, type KindUnderTest } from "../../copies/every-kind.ts";
import { namespacesThere, registryOf } from "../fleet.ts";

const CLAUSES: Readonly<Record<string, string>> = {
  ConfigMap: ", which the pod needs",
  NetworkPolicy: ", which may concern the pod",
};

export interface Answers {
  /** Errors of the first writes. */
  readonly errors?: readonly (readonly [code: KubeErrorCode, detail: string, refusedField?: string])[];
  /** The objects that a list finds. */
  readonly there?: readonly Stored<KubeObject>[];
}

/** An executor for one kind, its copy, and what its writes have done. */
export interface Executing<T extends KubeObject> {
  readonly executor: CopyExecutor<T>;
  readonly key: CopyKey;
  readonly copy: Stored<T>;
  /** The objects that the member lists. */
  readonly list: Stored<KubeObject>[];
  readonly objects: readonly KubeObject[];
  readonly patches: readonly (readonly { readonly path?: string; readonly value?: unknown }[])[];
  readonly told: readonly string[];
  readonly woken: readonly string[];
  readonly clock: { ms: number };
  readonly message: () => string | undefined;
  readonly held: (of?: Stored<T>, seen?: Stored<T>) => ReturnType<CopyExecutor<T>["held"]>;
  readonly isTaken: () => Promise<boolean>;
  readonly execute: (type: "create" | "patch" | "delete" | "reconsider") => ReturnType<CopyExecutor<T>["execute"]>;
}

/** Returns an executor for one kind, and its member. */
export function executing<T extends KubeObject>(
  kind: CopiedKind<T>,
  source: Stored<T>,
  { errors = [], there = [] }: Answers = {},
): Executing<T> {
  const remaining = [...errors];
  const name = kind.copyName?.(source.metadata, HOST.id) ?? source.metadata.name;
  const { namespace = "" } = source.metadata;
  const ref = { member: "west", kind: kind.resource.kind, namespace, name };
  const made = toCopy(kind, source, HOST);
  const copy = { ...made, metadata: { ...made.metadata, name, uid: "copy-uid", resourceVersion: "3" } };
  const list = [...there];
  const objects: KubeObject[] = [];
  const patches: { path?: string; value?: unknown }[][] = [];
  const told: string[] = [];
  const woken: string[] = [];
  const clock = { ms: 0 };
  const answer = (): Stored<KubeObject> => {
    const [code, detail = "", field] = remaining.shift() ?? [];
    if (code === undefined) return { metadata: { name, uid: "copy-uid", resourceVersion: "4" } };
    const details = { causes: field === undefined ? [] : [{ field }] };
    throw kubeError(code, detail, { verb: "write", resource: kind.resource.plural, details });
  };
  const client = fakeClient({
    create: async (_resource, object, { dryRun = false } = {}) => {
      if (!dryRun) objects.push(object);
      return answer();
    },
    patch: async (_resource, _ref, { type, body }) => {
      if (type === "json") patches.push([...body]);
      return answer();
    },
    delete: async () => {
      answer();
    },
    list: async () => ({ items: list }),
  });
  const executor = new CopyExecutor<T>({
    kinds: new Map([[kind.resource.kind, kind]]),
    identity: HOST,
    registry: registryOf([member("west", client)]),
    memberNamespaces: namespacesThere,
    recorder: { record: (_about, { reason, message }) => void told.push(`${reason} ${message}`) },
    clause: CLAUSES[kind.resource.kind] ?? "",
    isSameContent: () => false,
    onChange: (of) => void woken.push(of.name),
    clock: { now: () => clock.ms },
  });
  const key = copyKey(ref);
  const log = createLogger({ level: "silent" });
  const context = { key, signal: new AbortController().signal, heardAt: 0, log };
  const actions = {
    create: { type: "create", ref, source },
    patch: { type: "patch", ref, source, copy },
    delete: { type: "delete", ref, copy, onHost: source },
    reconsider: { type: "reconsider", ref },
  } as const satisfies Record<string, Action<T>>;
  return {
    executor,
    key,
    copy,
    list,
    objects,
    patches,
    told,
    woken,
    clock,
    message: () => executor.refusals.of(key)?.message,
    held: (of: Stored<T> = source, seen?: Stored<T>) => executor.held(key, of, seen),
    isTaken: () => executor.isTaken(ref, source, context),
    execute: (type: keyof typeof actions) => executor.execute(actions[type], context),
  };
}

export const metadata = { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7" };

export const service: Stored<ServiceObject> = {
  metadata,
  spec: { selector: { app: "web" }, ports: [{ port: 80 }], trafficDistribution: "PreferSameZone" },
};

/** Every kind that is not applied, with an object of it. */
export const KINDS: readonly KindUnderTest[] = (await everyKind()).filter(({ kind }) => kind.applied === undefined);

/** What tests of one kind share. */
interface TestsOf<T extends KubeObject> {
  readonly executes: (answers: Answers) => Executing<T>;
  /** The copy in messages. */
  readonly name: string;
  /** For how long another owner's object in its place is left alone. */
  readonly foreignMs: number;
  /** The source after a change. */
  readonly later: Stored<T>;
  readonly refusals: (count: number) => [code: KubeErrorCode, detail: string][];
}

export function testsOf<T extends KubeObject>(kind: CopiedKind<T>, source: Stored<T>): TestsOf<T> {
  return {
    executes: (answers: Answers) => executing(kind, source, answers),
    name: `${kind.resource.kind} web${CLAUSES[kind.resource.kind] ?? ""}`,
    // Users have the member's own object meanwhile, where they may.
    foreignMs: kind.isUsedInPlace?.(source.metadata.name) === true ? 600_000 : 60_000,
    later: { ...source, metadata: { ...source.metadata, resourceVersion: "8" } },
    refusals: (count: number) => Array(count).fill(["Forbidden", "exceeded quota"] as const),
  };
}
