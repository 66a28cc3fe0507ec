import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject } from "../../../src/api/json.ts";
import { WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Job, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { jobs, type Resource } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { isFinished } from "../../../src/whole/jobs/kind.ts";
import { type AuditEvent, auditEvents, isWrite } from "../../support/clusters/audit.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { objectLives, overlaps } from "../../support/harness/pod-lives.ts";
import type { Scene } from "../scene.ts";
import { FOREIGN_NAME, REUSED_NAME } from "../workloads.ts";
import { CUSTOM_KINDS, fieldsOf, KINDS } from "./kinds.ts";

const LEGATION = "system:serviceaccount:legation-system:";

/** The objects and Jobs of a run, as the host showed them. */
export interface ObjectHistories {
  /** Objects and Jobs that ever were. */
  readonly count: () => number;
  /** Statuses that went wrong so far. */
  readonly wrong: ReadonlySet<string>;
  readonly stop: () => Promise<void>;
}

/** Watches the host: a status never tells of a generation that members have not seen, and a Job's never goes back. */
export async function watchObjects({ clients: { host }, namespace, kinds }: Scene): Promise<ObjectHistories> {
  const wrong = new Set<string>();
  const seen = new Set<string>();
  const before = new Map<string, Stored<Job>>();
  const reflectors: Reflector<AnyObject>[] = CUSTOM_KINDS.filter((kind) => kinds.includes(kind)).map((kind) =>
    follow(host, KINDS[kind], namespace, (object) => {
      seen.add(object.metadata.uid);
      const problem = aheadOf(object, fieldsOf(kind, object).version);
      if (problem !== undefined) wrong.add(`${kind} ${object.metadata.name}: ${problem}`);
    }),
  );
  const ofJobs = follow(host, jobs, namespace, (job) => {
    const { uid, name } = job.metadata;
    if (job.metadata.labels?.[WHOLE_KEY] === undefined) return;
    seen.add(uid);
    const earlier = before.get(uid);
    before.set(uid, job);
    if (earlier === undefined) return;
    if (isFinished(earlier) && !isFinished(job)) wrong.add(`Job ${name}: had finished, and runs again`);
    const [was = 0, is = 0] = [earlier.status?.succeeded, job.status?.succeeded];
    if (is < was) wrong.add(`Job ${name}: its completions went from ${was} to ${is}`);
  });
  return {
    count: () => seen.size,
    wrong,
    stop: async () => {
      await Promise.all([...reflectors.map((one) => one.stop()), ofJobs.stop()]);
    },
  };
}

function follow<T extends AnyObject | Job>(
  client: ClusterClient,
  resource: Resource<T>,
  namespace: string,
  onObject: (object: Stored<T>) => void,
): Reflector<T> {
  const reflector = new Reflector<T>({
    client,
    resource,
    namespace,
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: ({ object }) => onObject(object),
  });
  reflector.start();
  return reflector;
}

/** Returns what a status tells though its members have not seen the object's last change. */
function aheadOf({ metadata: { generation }, status }: Stored<AnyObject>, version: unknown): string | undefined {
  if (!isJsonObject(status) || status.seen === version) return undefined;
  const conditions = Array.isArray(status.conditions) ? status.conditions.filter(isJsonObject) : [];
  const told = [status, ...conditions].filter(({ observedGeneration }) => observedGeneration === generation);
  if (told.length === 0) return undefined;
  return `observedGeneration is ${generation}, and its members saw version ${String(status.seen)} of ${String(version)}`;
}

/** Returns pairs of copies of one exclusive object, or of one undivided Job, that existed at one moment. */
export async function objectTwins({ members, namespace, kinds, ledger }: Scene): Promise<string[]> {
  // An adopted object was the member's own before, and is again when the object goes elsewhere.
  const isKept = (member: string, kind: string, name: string): boolean =>
    ledger.kept.some((one) => one.member === member && one.kind === kind && one.name === name);
  const resources = [jobs, ...(kinds.includes("Engine") ? [KINDS.Engine] : [])];
  const found = await Promise.all(
    resources.map(async (resource) => {
      const lives = await Promise.all(
        Object.values(members).map((member) => objectLives(member, namespace, { resource })),
      );
      const counted = lives.flat().filter(({ cluster, name }) => isOnce(name) && !isKept(cluster, resource.kind, name));
      return overlaps(counted).map((pair) => `two copies of one ${resource.kind} at once: ${JSON.stringify(pair)}`);
    }),
  );
  return found.flat();
}

/** Reports whether the name is that of one object alone, which one member may have. */
function isOnce(name: string): boolean {
  return name !== FOREIGN_NAME && name !== REUSED_NAME && !name.startsWith("shared-");
}

/** Returns what became of objects that are the members' own. */
export async function foreignObjectWrites(scene: Scene): Promise<string[]> {
  const { members, clients, namespace, ledger } = scene;
  const changed = await Promise.all(
    ledger.foreign
      .filter(({ member, kind }) => !ledger.emptied.has(`${member}/${kind}`))
      .map(async ({ member, kind, name, uid, resourceVersion }) => {
        const found = await clients[member].find(KINDS[kind], { namespace, name });
        const isSame = found?.metadata.uid === uid && found.metadata.resourceVersion === resourceVersion;
        return isSame ? [] : [`${kind} ${name}, which is ${member}'s own, was changed or deleted`];
      }),
  );
  const onJobs = await Promise.all(
    (["west", "east"] as const)
      .filter((member) => !ledger.emptied.has(`${member}/Job`))
      .map((member) => writesOn(members[member], namespace, { names: new Set([FOREIGN_NAME]), resource: "jobs" })),
  );
  return [...changed.flat(), ...onJobs.flat().map((write) => `${write} of a Job that is not Legation's`)];
}

/** Returns Legation's writes on whole objects since the time, which is RFC 3339: there are none while nothing happens. */
export async function writesSince(scene: Scene, since: string): Promise<string[]> {
  const { host, members, clients, namespace, kinds, ledger } = scene;
  // The copy that a member refused comes a minute after a fault has deleted its own object of that name.
  const mayCome = (kind: string): boolean => ["west", "east"].some((name) => ledger.emptied.has(`${name}/${kind}`));
  const resources = [jobs, ...kinds.map((kind) => KINDS[kind])];
  const found = await Promise.all(
    resources.map(async (resource) => {
      const { items } = await clients.host.list<AnyObject | Job>(resource, { namespace, labelSelector: WHOLE_KEY });
      const names = new Set(items.map(({ metadata }) => metadata.name));
      if (mayCome(resource.kind)) names.delete(FOREIGN_NAME);
      const all = [host, members.west, members.east].map((cluster) =>
        writesOn(cluster, namespace, { names, resource: resource.plural, since }),
      );
      return (await Promise.all(all)).flat();
    }),
  );
  // A copy for pods alone goes some seconds after the last of them.
  const isLate = (write: string): boolean => write.includes(`: delete ${KINDS.ConfigMap.plural}/`);
  return found.flat().flatMap((write) => (isLate(write) ? [] : [`${write}, though nothing happens`]));
}

async function writesOn(
  cluster: Cluster,
  namespace: string,
  {
    names,
    resource,
    since = "",
  }: { readonly names: ReadonlySet<string>; readonly resource: string; readonly since?: string },
): Promise<string[]> {
  const concerns = ({ objectRef, user, requestReceivedTimestamp }: AuditEvent): boolean =>
    user.username.startsWith(LEGATION) &&
    objectRef?.namespace === namespace &&
    objectRef.resource === resource &&
    names.has(objectRef.name ?? "") &&
    requestReceivedTimestamp > since;
  const events = await auditEvents(
    cluster,
    (event) => isWrite(event) && (event.responseStatus?.code ?? 500) < 300 && concerns(event),
    [namespace],
  );
  return events.map(({ verb, objectRef }) => `${cluster.name}: ${verb} ${resource}/${objectRef?.name}`);
}
