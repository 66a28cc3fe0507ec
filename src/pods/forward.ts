import { jsonEqual } from "../api/json.ts";
import { FORWARDED_ANNOTATION, INTERNAL_ANNOTATIONS, SAFE_TO_EVICT_ANNOTATION } from "../api/keys.ts";
import type { Container, Pod, PodSpec, Stored, Toleration } from "../api/kubernetes.ts";
import type { ForwardedRecord, KeysOfMaps } from "./compact-record.ts";
import { forwardedAnnotations, forwardedLabels, HOST_ONLY_LABELS } from "./delegate.ts";
import { addedTolerations } from "./failover.ts";
import { type Fingerprints, fingerprints } from "./fingerprints.ts";
import { conditionsToRecord } from "./followed-conditions.ts";
import { type ForwardPatch, keysDiffer, recordOf, writeRecord } from "./forward-record.ts";
import { isMerged, type Merged } from "./host-admission.ts";
import { recordedGates } from "./readiness-gates.ts";

/** A resize that the member refused, as a kubelet reports it in PodResizePending. */
export interface ResizeRefusal {
  /** `Deferred` may become possible, `Infeasible` cannot. */
  readonly reason: "Deferred" | "Infeasible";
  readonly message: string;
  readonly since: string;
}

/** Returns patches by which the delegate follows its proxy but for a `refused` resize. The last writes the record. */
export function forwardPatches(
  proxy: Pod,
  delegate: Stored<Pod>,
  refused?: ResizeRefusal,
  merged?: Merged,
): ForwardPatch[] {
  const labels = forwardedLabels(proxy);
  const annotations = forwardedAnnotations(proxy);
  const { record: gates, isNews: areGatesNews } = recordedGates(proxy, delegate);
  const { conditions, isNews } = conditionsToRecord(proxy, delegate);
  const record = { ...recordOf(proxy, delegate), ...gates };
  const keys = { labels: Object.keys(labels), annotations: Object.keys(annotations) };
  const ifOwned = keysDiffer(record, keys) === true ? keysBeside(delegate, { labels, annotations }) : undefined;
  const earlierLabels = record.labels.filter((key) => !HOST_ONLY_LABELS.has(key));
  const labelChanges = difference(delegate.metadata.labels ?? {}, labels, earlierLabels);
  const annotationChanges = difference(delegate.metadata.annotations ?? {}, annotations, record.annotations);
  const { resize: wanted, ephemeral, spec } = specChanges(proxy, delegate, merged);
  const resize = refused === undefined ? wanted : undefined;
  const prints = refused === undefined ? fingerprints(proxy) : withoutResized(record, fingerprints(proxy));
  const keysChanged = (labelChanges ?? annotationChanges ?? ifOwned) !== undefined;
  const hasSpec = (resize ?? ephemeral ?? spec) !== undefined;
  const isUnrecorded = areGatesNews || isNews || (wanted === undefined && lacksResources(record, prints));
  if (!keysChanged && !hasSpec && !isUnrecorded) return [];
  const { uid } = delegate.metadata;
  const written = (content: ForwardedRecord): Record<string, string> => ({
    [FORWARDED_ANNOTATION]: writeRecord(content, proxy),
  });
  const metadata = {
    uid,
    ...(labelChanges === undefined ? {} : { labels: labelChanges }),
    annotations: { ...annotationChanges, ...written({ ...keys, ...gates, conditions, spec: prints }) },
  };
  const withoutKeys = withSpec({ uid, annotations: written({ ...record, conditions, spec: prints }) }, spec);
  const owned = ifOwned === undefined ? {} : { ifOwned };
  const last: ForwardPatch = {
    ...withSpec(metadata, spec),
    ...owned,
    ...(keysChanged && (hasSpec || isUnrecorded)
      ? { apart: [withoutKeys, { ...withSpec(metadata, undefined), ...owned }] }
      : {}),
  };
  const at = (subresource: "resize" | "ephemeralcontainers", change: object | undefined): ForwardPatch[] =>
    change === undefined ? [] : [{ subresource, body: { metadata: { uid }, spec: change } }];
  return [
    ...(resize === undefined ? [] : opening(record, proxy, uid)),
    ...at("resize", resize),
    ...at("ephemeralcontainers", ephemeral),
    last,
  ];
}

/** Returns the resources that the delegate still lacks, as a patch's spec. */
export function resizeNeeded(proxy: Pod, delegate: Stored<Pod>): object | undefined {
  return specChanges(proxy, delegate).resize;
}

function withSpec(metadata: ForwardPatch["body"]["metadata"], spec: object | undefined): ForwardPatch {
  return { body: { metadata, ...(spec === undefined ? {} : { spec }) } };
}

/** Returns the keys of a delegate that its proxy does not have. The member's own are among them. */
function keysBeside({ metadata }: Stored<Pod>, wanted: Record<keyof KeysOfMaps, object>): KeysOfMaps {
  const isOwn = (key: string): boolean =>
    HOST_ONLY_LABELS.has(key) || INTERNAL_ANNOTATIONS.has(key) || key === SAFE_TO_EVICT_ANNOTATION;
  const beside = (map: keyof KeysOfMaps): string[] =>
    Object.keys(metadata[map] ?? {}).filter((key) => !isOwn(key) && !Object.hasOwn(wanted[map], key));
  return { labels: beside("labels"), annotations: beside("annotations") };
}

/** Removes resources from the record: a proxy resized back meanwhile would look unchanged. */
function opening(record: ForwardedRecord, proxy: Pod, uid: string): ForwardPatch[] {
  const { spec: earlier = {} } = record;
  const now = fingerprints(proxy);
  const kept = Object.entries(earlier).filter(([path, print]) => !isOfResources(path) || print === now[path]);
  if (kept.length === Object.keys(earlier).length) return [];
  const text = writeRecord({ ...record, spec: Object.fromEntries(kept) }, proxy);
  return [{ body: { metadata: { uid, annotations: { [FORWARDED_ANNOTATION]: text } } } }];
}

function withoutResized({ spec: earlier = {} }: ForwardedRecord, now: Fingerprints): Fingerprints {
  return Object.fromEntries(
    Object.entries(now).filter(([path, print]) => !isOfResources(path) || earlier[path] === print),
  );
}

/** Reports whether a resize was begun and taken back. */
function lacksResources({ spec: earlier }: ForwardedRecord, now: Fingerprints): boolean {
  return earlier !== undefined && Object.keys(now).some((path) => isOfResources(path) && !(path in earlier));
}

function isOfResources(path: string): boolean {
  return path.startsWith("resources");
}

/** Reports whether the delegate's spec follows, except for a `refused` resize. */
export function specFollows(proxy: Pod, delegate: Stored<Pod>, refused?: ResizeRefusal): boolean {
  const { resize, ephemeral, spec } = specChanges(proxy, delegate);
  return (ephemeral ?? spec) === undefined && (resize === undefined || refused !== undefined);
}

interface SpecChanges {
  readonly resize?: object | undefined;
  readonly ephemeral?: object | undefined;
  readonly spec?: object | undefined;
}

type HasChanged = (path: string) => boolean;

function specChanges(proxy: Pod, delegate: Stored<Pod>, merged?: Merged): SpecChanges {
  const { spec: earlier } = recordOf(proxy, delegate);
  const now = fingerprints(proxy);
  const changed = new Set(Object.keys(now).filter((path) => earlier?.[path] !== now[path]));
  if (changed.size === 0 || proxy.spec === undefined || delegate.spec === undefined) return {};
  const hasChanged: HasChanged = (path) => changed.has(path);
  return {
    resize: resizeOf(proxy.spec, delegate.spec, hasChanged),
    ephemeral: ephemeralOf(proxy.spec, delegate.spec, hasChanged),
    spec: plainChanges(proxy, delegate.spec, hasChanged, merged),
  };
}

function plainChanges(proxy: Pod, theirs: PodSpec, hasChanged: HasChanged, merged?: Merged): object | undefined {
  const images = (own: readonly Container[] = [], other: readonly Container[] = []): object[] =>
    pairs(own, other).flatMap(([{ name, image }, current]) =>
      hasChanged(`image/${name}`) && image !== current.image ? [{ name, image }] : [],
    );
  const { containers, initContainers, activeDeadlineSeconds: deadline } = proxy.spec ?? {};
  // The API server lets a deadline be set and shortened only.
  const own = addedTolerations(proxy, theirs).filter((toleration) => !isMerged(toleration, merged));
  const sooner = deadline !== undefined && deadline < (theirs.activeDeadlineSeconds ?? Number.POSITIVE_INFINITY);
  return withoutEmpty({
    containers: images(containers, theirs.containers),
    initContainers: images(initContainers, theirs.initContainers),
    activeDeadlineSeconds: hasChanged("activeDeadlineSeconds") && sooner ? deadline : undefined,
    tolerations: hasChanged("tolerations") ? mergedTolerations(own, theirs.tolerations) : undefined,
  });
}

function resizeOf(ours: PodSpec, theirs: PodSpec, hasChanged: HasChanged): object | undefined {
  const resized = (own: readonly Container[] = [], other: readonly Container[] = []): object[] =>
    pairs(own, other).flatMap(([{ name, resources }, current]) => {
      const changes = hasChanged(`resources/${name}`) ? amountChanges(resources, current.resources) : undefined;
      return changes === undefined ? [] : [{ name, resources: changes }];
    });
  return withoutEmpty({
    containers: resized(ours.containers, theirs.containers),
    initContainers: resized(ours.initContainers, theirs.initContainers),
    resources: hasChanged("resources") ? amountChanges(ours.resources, theirs.resources) : undefined,
  });
}

type Amounts = Container["resources"];

/** Only cpu and memory can be resized. */
function amountChanges(wanted: Amounts, current: Amounts): object | undefined {
  const different = (field: "requests" | "limits"): object | undefined =>
    withoutEmpty(
      Object.fromEntries(
        ["cpu", "memory"].map((name) => {
          const amount = wanted?.[field]?.[name];
          return [name, amount === current?.[field]?.[name] ? undefined : amount];
        }),
      ),
    );
  return withoutEmpty({ requests: different("requests"), limits: different("limits") });
}

/** Ephemeral containers cannot be changed or removed. */
function ephemeralOf(ours: PodSpec, theirs: PodSpec, hasChanged: HasChanged): object | undefined {
  const present = new Set(theirs.ephemeralContainers?.map(({ name }) => name));
  const volumes = new Set(theirs.volumes?.map(({ name }) => name));
  const added = (ours.ephemeralContainers ?? [])
    .filter(({ name }) => hasChanged(`ephemeral/${name}`) && !present.has(name))
    .map(({ volumeMounts, ...container }) => {
      // The token volume has another name in the member.
      const mounts = volumeMounts?.filter(({ name }) => volumes.has(name)) ?? [];
      return mounts.length === 0 ? container : { ...container, volumeMounts: mounts };
    });
  return added.length === 0 ? undefined : { ephemeralContainers: added };
}

/** Returns the whole list, since patches do not merge it: the member's with the author's seconds and additions. */
function mergedTolerations(own: Toleration[], theirs: Toleration[] = []): Toleration[] | undefined {
  const same = (a: Toleration, b: Toleration): boolean => jsonEqual(withoutSeconds(a), withoutSeconds(b));
  const kept = theirs.map((toleration) => own.find((wanted) => same(wanted, toleration)) ?? toleration);
  const added = own.filter((wanted) => !theirs.some((toleration) => same(wanted, toleration)));
  const merged = [...kept, ...added];
  return jsonEqual(merged, theirs) ? undefined : merged;
}

function withoutSeconds({ tolerationSeconds: _, ...toleration }: Toleration): object {
  return toleration;
}

/** Containers of one side only are left alone. */
function pairs(own: readonly Container[], other: readonly Container[]): [Container, Container][] {
  const others = new Map(other.map((container) => [container.name, container]));
  return own.flatMap((container): [Container, Container][] => {
    const current = others.get(container.name);
    return current === undefined ? [] : [[container, current]];
  });
}

function withoutEmpty(fields: Readonly<Record<string, unknown>>): object | undefined {
  const kept = Object.entries(fields).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function difference(
  current: Record<string, string>,
  wanted: Record<string, string>,
  earlier: readonly string[],
): Record<string, string | null> | undefined {
  const changes: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted)) if (current[key] !== value) changes[key] = value;
  const isGone = (key: string): boolean => !Object.hasOwn(wanted, key) && Object.hasOwn(current, key);
  for (const key of earlier) if (isGone(key)) changes[key] = null;
  return Object.keys(changes).length === 0 ? undefined : changes;
}
