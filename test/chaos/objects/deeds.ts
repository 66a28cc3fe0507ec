import type { AnyObject } from "../../../src/api/delegated-type.ts";
import {
  COPY_LABEL,
  HOST_LABEL,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OWNER_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_KEY,
} from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { clusters } from "../../../src/api/resources.ts";
import { isOrphan } from "../../../src/copies/objects.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { apiVersionOf, jobs } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { eventually } from "../../support/harness/wait.ts";
import { createIn } from "../../support/harness/workloads.ts";
import { type Happening, pick } from "../plan.ts";
import type { Scene } from "../scene.ts";
import { FOREIGN_NAME, marksOf, pod, REUSED_NAME, reads } from "../workloads.ts";
import { wholeJob } from "./jobs.ts";
import {
  APPLIED_BY,
  CUSTOM_KINDS,
  contentField,
  contentOf,
  fieldsOf,
  KINDS,
  type Kind,
  OPEN_LABEL,
  PLACEMENT_KEYS,
  placementBy,
  TAKEN,
  whole,
} from "./kinds.ts";
import { mayDrift } from "./ledger.ts";
import { isObserved, writeStatus } from "./operator.ts";
import type { ObjectDeed } from "./plan.ts";

/** Prefix of objects that members had before. */
const ADOPTED = "own-";
/** Prefix of ConfigMaps that pods read. */
const USED = "used-";
const ORPHANED_MS = 15_000;

type Deed = Extract<Happening, { readonly type: "deed" }> & { readonly deed: ObjectDeed };

interface Found {
  readonly kind: Kind;
  readonly object: Stored<AnyObject>;
}

/** Does with a whole object what its author, or a client of a member, would do now. */
export async function actOnObjects(scene: Scene, { deed, number, dice }: Deed): Promise<void> {
  const { namespace, clients, ledger } = scene;
  const { host } = clients;
  const kind = pick<Kind>(scene.kinds, again(dice, 1));
  const member = again(dice, 2) < 0.5 ? "west" : "east";
  const there = clients[member];
  switch (deed) {
    case "give an object": {
      const annotations = placementBy(kind, again(dice, 3));
      const made = whole(kind, { name: `${kind.toLowerCase()}-${number}`, content: { version: 1 }, annotations });
      await host.create(KINDS[kind], inNamespace(made, namespace));
      return;
    }
    case "change an object":
      return change(scene, dice, ({ kind: its, object }) => {
        const version = versionOf(its, object) + 1;
        return contentOf(its, { version, parts: 1 + Math.floor(again(dice, 4) * 6) });
      });
    case "place an object elsewhere":
      return change(scene, dice, ({ kind: its }) => {
        const none = Object.fromEntries(PLACEMENT_KEYS.map((key) => [key, null]));
        return { metadata: { annotations: { ...none, ...placementBy(its, again(dice, 3)) } } };
      });
    case "delete an object": {
      const found = await pickObject(scene, dice, isUnused);
      if (found !== undefined) await host.delete(KINDS[found.kind], refOf(found));
      return;
    }
    case "take an object back, or give it again":
      return change(scene, dice, ({ object }) => {
        const isGiven = object.metadata.annotations?.[WHOLE_KEY] !== undefined;
        return { metadata: { annotations: { [WHOLE_KEY]: isGiven ? null : "true" } } };
      });
    case "delete an object that members keep":
      return orphan(scene, dice);
    case "create an object again": {
      const ref = { namespace, name: REUSED_NAME };
      await host.delete(KINDS[kind], ref).catch(unless("NotFound"));
      const made = whole(kind, {
        name: REUSED_NAME,
        content: { version: 1 },
        annotations: placementBy(kind, again(dice, 3)),
      });
      await eventually(() => host.create(KINDS[kind], inNamespace(made, namespace)), { timeoutMs: 20_000 });
      return;
    }
    case "adopt a member's object": {
      const name = `${ADOPTED}${number}`;
      const annotations = { [ON_CONFLICT_ANNOTATION]: "adopt", "legation.dev/clusters": member };
      const metadata = { namespace, name };
      // Fields that the creator owns stay as they are.
      const theirs = { [contentField(kind)]: { [TAKEN.field]: TAKEN.theirs } };
      await there.create(KINDS[kind], { apiVersion: apiVersionOf(KINDS[kind]), kind, ...theirs, metadata });
      ledger.spared.add(`${kind}/${name}`);
      ledger.kept.push({ member, kind, name });
      const made = whole(kind, { name, content: { version: 1 }, annotations });
      await host.create(KINDS[kind], inNamespace(made, namespace));
      return;
    }
    case "change a copy by hand":
      return drift(scene, { kind, member, dice });
    case "prune in a member what carries a tool's marks": {
      const [[key, value] = []] = Object.entries(APPLIED_BY);
      const { items } = await there.list(KINDS[kind], { namespace, labelSelector: `${key}=${value}` });
      for (const { metadata } of items) {
        const { name, uid } = metadata;
        ledger.pruned.push({ member, kind, name, uid });
        await there.delete(KINDS[kind], { namespace, name }, { uid }).catch(unless("NotFound"));
      }
      return;
    }
    case "change a status in a member": {
      const its = pick(CUSTOM_KINDS, again(dice, 3));
      const copy = pickFrom(await copiesIn(scene, member, its), dice);
      if (copy !== undefined && isObserved(copy)) await writeStatus(there, its, copy, again(dice, 4) < 0.5);
      return;
    }
    case "relabel a Cluster": {
      const body = { metadata: { labels: { [OPEN_LABEL]: again(dice, 3) < 0.5 ? "true" : null } } };
      await host.patch(clusters, { name: member }, { type: "merge", body });
      return;
    }
    case "run a pod with a whole ConfigMap": {
      const name = `${USED}${number}`;
      await host.create(KINDS.ConfigMap, inNamespace(whole("ConfigMap", { name, content: { version: 1 } }), namespace));
      const { volumes } = reads(name, name);
      await createIn(host, namespace, [pod(name, { spec: { volumes: volumes.slice(0, 1) } })]);
      return;
    }
    case "run a whole Job":
      await createIn(host, namespace, [
        wholeJob(`whole-${number}`, { completions: 1 + Math.floor(dice * 4), endsAfter: endOf(dice) }),
      ]);
      return;
    case "divide a whole Job": {
      const clusters = { west: { weight: 1 + Math.floor(again(dice, 3) * 3) }, east: { weight: 1 } };
      const annotations = { [PREFERENCES_ANNOTATION]: JSON.stringify({ clusters }) };
      const completions = 2 + Math.floor(dice * 5);
      await createIn(host, namespace, [
        wholeJob(`shared-${number}`, { completions, endsAfter: endOf(dice), annotations }),
      ]);
      return;
    }
    case "suspend a whole Job, or resume it": {
      const job = await pickJob(scene, dice);
      if (job === undefined) return;
      const body = { spec: { suspend: job.spec?.suspend !== true } };
      await host.patch(jobs, { namespace, name: job.metadata.name }, { type: "merge", body });
      return;
    }
    case "delete a whole Job": {
      const job = await pickJob(scene, dice);
      const propagationPolicy = pick(["Background", "Foreground", "Orphan"] as const, again(dice, 3));
      if (job !== undefined) await host.delete(jobs, { namespace, name: job.metadata.name }, { propagationPolicy });
      return;
    }
    case "restore an object under another name": {
      // Members would keep copies that no rule of the ledger knows.
      const isDeleted = ({ object: { metadata } }: Found): boolean =>
        metadata.annotations?.[ON_DELETE_ANNOTATION] === undefined;
      const found = await pickObject(scene, dice, isDeleted);
      if (found === undefined) return;
      const { status: _, ...object }: AnyObject = found.object;
      const metadata = marksOf(found.object.metadata, `${found.kind.toLowerCase()}-${number}`);
      await host.create(KINDS[found.kind], inNamespace({ ...object, metadata }, namespace));
      return;
    }
    case "restore a whole Job under another name": {
      const { metadata, spec } = (await pickJob(scene, dice)) ?? {};
      if (metadata === undefined || spec === undefined) return;
      const { selector: _, template, ...fields } = spec;
      const { labels: __, ...pods } = template.metadata ?? {};
      const name = metadata.name.replace(/\d+$/, `${number}`);
      await host.create(jobs, {
        metadata: { namespace, ...marksOf(metadata, name) },
        spec: { ...fields, template: { ...template, metadata: pods } },
      });
      return;
    }
    case "delete the copy of a whole Job": {
      const { items } = await there.list(jobs, { namespace, labelSelector: HOST_LABEL });
      const copy = pickFrom(items, dice);
      if (copy === undefined) return;
      ledger.lostJobs.add(copy.metadata.name);
      await there.delete(jobs, { namespace, name: copy.metadata.name }, { propagationPolicy: "Background" });
      return;
    }
  }
}

/** Annotates an object so that members keep their copies, and deletes it once they know. */
async function orphan(scene: Scene, dice: number): Promise<void> {
  const { clients, ledger } = scene;
  const found = await pickObject(scene, dice, isUnused);
  if (found === undefined || found.object.metadata.name === REUSED_NAME) return;
  const { kind, object } = found;
  const resource = KINDS[kind];
  ledger.spared.add(`${kind}/${object.metadata.name}`);
  const body = { metadata: { annotations: { [ON_DELETE_ANNOTATION]: "orphan" } } };
  await clients.host.patch(resource, refOf(found), { type: "merge", body });
  const knows = async (): Promise<("west" | "east")[]> => {
    const copies = await Promise.all(
      (["west", "east"] as const).map(async (member) => {
        const copy = await clients[member].find(resource, refOf(found));
        if (copy === undefined || ownerOf(copy)?.uid !== object.metadata.uid) return [];
        if (!isOrphan(copy)) throw new Error(`${member} does not know yet`);
        return [member];
      }),
    );
    return copies.flat();
  };
  const members = await eventually(knows, { timeoutMs: ORPHANED_MS });
  const { uid, resourceVersion } = (await clients.host.get(resource, refOf(found))).metadata;
  await clients.host.delete(resource, refOf(found), { uid, resourceVersion });
  for (const member of members) ledger.kept.push({ member, kind, name: object.metadata.name });
}

interface Drifting {
  readonly kind: Kind;
  readonly member: "west" | "east";
  readonly dice: number;
}

/** Changes or deletes a copy in its member. */
async function drift(scene: Scene, { kind, member, dice }: Drifting): Promise<void> {
  const { clients, ledger } = scene;
  const client = clients[member];
  const copy = pickFrom(await copiesIn(scene, member, kind), dice);
  if (copy === undefined) return;
  const { namespace = "", name, uid } = copy.metadata;
  if (!mayDrift(ledger, { member, kind, name })) return;
  const field = contentField(kind);
  const merge = async (fields: object): Promise<void> => {
    const metadata = { ...("metadata" in fields ? (fields.metadata as object) : {}), uid };
    await client.patch(KINDS[kind], { namespace, name }, { type: "merge", body: { ...fields, metadata } });
  };
  switch (Math.floor(again(dice, 5) * 6)) {
    case 0:
      return client.delete(KINDS[kind], { namespace, name }, { uid });
    case 1:
      return merge({ [field]: { color: null } });
    case 2:
      await merge({ [field]: { [TAKEN.field]: TAKEN.theirs } });
      ledger.taken.push({ member, kind, name, uid });
      return;
    case 3:
      return merge({ metadata: { labels: { [HOST_LABEL]: null, [COPY_LABEL]: null } } });
    case 4:
      return merge({ metadata: { labels: { [WHOLE_KEY]: null } } });
    default:
      return merge({ metadata: { annotations: { [OWNER_ANNOTATION]: null } } });
  }
}

/** Changes one whole object on the host. */
async function change(scene: Scene, dice: number, bodyFor: (found: Found) => object): Promise<void> {
  const found = await pickObject(scene, dice);
  if (found === undefined) return;
  await scene.clients.host.patch(KINDS[found.kind], refOf(found), { type: "merge", body: bodyFor(found) });
}

/** Returns one of the objects that chaos gives to members, or has taken back from them. */
async function pickObject(
  { clients: { host }, namespace, kinds }: Scene,
  dice: number,
  isMeant: (found: Found) => boolean = () => true,
): Promise<Found | undefined> {
  const all = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await host.list(KINDS[kind], { namespace });
      return items.map((object) => ({ kind, object }));
    }),
  );
  const ours = all.flat().filter(({ kind, object: { metadata } }) => {
    return metadata.deletionTimestamp === undefined && isOfChaos(kind, metadata.name);
  });
  return pickFrom(ours.filter(isMeant), again(dice, 6));
}

/** Reports whether no pod waits for the object. */
function isUnused({ object: { metadata } }: Found): boolean {
  return !metadata.name.startsWith(USED);
}

function isOfChaos(kind: Kind, name: string): boolean {
  return name === REUSED_NAME || [`${kind.toLowerCase()}-`, ADOPTED, USED].some((prefix) => name.startsWith(prefix));
}

async function pickJob({ clients: { host }, namespace }: Scene, dice: number) {
  const { items } = await host.list(jobs, { namespace, labelSelector: WHOLE_KEY });
  return pickFrom(
    items.filter(({ metadata }) => metadata.name !== FOREIGN_NAME),
    again(dice, 6),
  );
}

async function copiesIn({ clients, namespace }: Scene, member: "west" | "east", kind: Kind) {
  const { items } = await clients[member].list(KINDS[kind], { namespace, labelSelector: `${HOST_LABEL},${WHOLE_KEY}` });
  return items;
}

function pickFrom<T>(items: readonly T[], dice: number): T | undefined {
  return items.length === 0 ? undefined : pick(items, dice);
}

function versionOf(kind: Kind, object: Stored<AnyObject>): number {
  return Number(fieldsOf(kind, object).version ?? 0);
}

function refOf({ object: { metadata } }: Found): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata.namespace ?? "", name: metadata.name };
}

function inNamespace(object: AnyObject, namespace: string): AnyObject {
  return { ...object, metadata: { ...object.metadata, namespace } };
}

/** Returns further dice, which depend on the first. */
function again(dice: number, time: number): number {
  return (dice * 7 ** (time + 2)) % 1;
}

function endOf(dice: number): string | undefined {
  return again(dice, 5) < 0.3 ? undefined : "1s";
}

function unless(code: "NotFound"): (error: unknown) => void {
  return (error) => {
    if (!isKubeError(error, code)) throw error;
  };
}
