import { z } from "zod";
import {
  CLAIM_STATUS_ANNOTATION,
  CLUSTER_ANNOTATION,
  COPY_LABEL,
  COPY_LABEL_VALUE,
  GROUP,
  HOST_LABEL,
  OWNER_ANNOTATION,
} from "../api/keys.ts";
import type { PersistentVolumeClaim, Pod, Stored } from "../api/kubernetes.ts";
import { parseAmounts } from "../api/quantity.ts";
import { structuredTextReader } from "../api/structured-text.ts";
import { type HostIdentity, type Owner, ownerOf } from "../pods/delegate.ts";

/** Storage classes of the host, and a member's in their place. */
export type StorageClasses = Readonly<Record<string, string>>;

/** The host's fields of a member's claim. */
export interface ClaimStatus {
  readonly uid: string;
  readonly phase: string;
  readonly capacity?: string;
  readonly volumeName?: string;
  /** Why it does not become as large as the host's. */
  readonly notGrown?: string;
}

const STORAGE = "storage";
// The annotation of old manifests, which Kubernetes prefers to the field (`GetPersistentVolumeClaimClass`).
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/**
 * The claims that a pod names, each once. Those of generic ephemeral volumes are not among them: each cluster makes its
 * own from the pod's spec, and nothing in them outlives the pod.
 */
export function claimNames({ spec }: Pod): string[] {
  const names = (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
  return names.length < 2 ? names : [...new Set(names)];
}

/** The member that has the data, as written on the host's claim. */
export function clusterOf({ metadata }: Stored<PersistentVolumeClaim>): string | undefined {
  return metadata.annotations?.[CLUSTER_ANNOTATION];
}

/** Why no member can have a claim in the place of this one, and what to write instead; undefined when one can. */
export function claimProblem({ metadata, spec }: Stored<PersistentVolumeClaim>): string | undefined {
  const claim = `PersistentVolumeClaim ${metadata.name}`;
  // The data of a claim that is in a member stays there, whatever the host's provisioner did since.
  if (metadata.annotations?.[CLUSTER_ANNOTATION] !== undefined) return undefined;
  if (spec?.volumeName !== undefined && spec.volumeName !== "") {
    return (
      `${claim}: spec.volumeName: it is bound to volume ${spec.volumeName} of the host, which no member can mount; write a claim ` +
      "of a storage class that binds nothing on the host (volumeBindingMode: WaitForFirstConsumer, or a name that only " +
      'members know), or keep the pod on the host with legation.dev/delegate: "false"'
    );
  }
  const source = spec?.dataSourceRef === undefined ? spec?.dataSource && "dataSource" : "dataSourceRef";
  if (source !== undefined) {
    return `${claim}: spec.${source}: what it names is on the host, and no member has it; write a claim without it, and have a pod fill it`;
  }
  return undefined;
}

/** The claim to create in a member. What it is bound to is that member's business; it has no annotations of the host's. */
export function toMemberClaim(
  claim: Stored<PersistentVolumeClaim>,
  host: HostIdentity,
  classes: StorageClasses = {},
): PersistentVolumeClaim {
  const { name, namespace = "", labels = {} } = claim.metadata;
  const carried = Object.entries(labels).filter(([key]) => !key.startsWith(`${GROUP}/`));
  const { accessModes, resources, volumeMode, selector, volumeAttributesClassName } = claim.spec ?? {};
  const storageClassName = classIn(classOf(claim), classes);
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      namespace,
      labels: { ...Object.fromEntries(carried), [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
      annotations: ownerAnnotation(claim, host),
    },
    spec: {
      ...(accessModes === undefined ? {} : { accessModes }),
      ...(resources === undefined ? {} : { resources }),
      ...(volumeMode === undefined ? {} : { volumeMode }),
      ...(selector === undefined ? {} : { selector }),
      ...(volumeAttributesClassName === undefined ? {} : { volumeAttributesClassName }),
      ...(storageClassName === undefined ? {} : { storageClassName }),
    },
  };
}

function classOf({ metadata, spec }: Stored<PersistentVolumeClaim>): string | undefined {
  return metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName;
}

/** None is the member's default, and an empty one no provisioning at all, unless that is mapped, too. */
function classIn(name: string | undefined, classes: StorageClasses): string | undefined {
  return name === undefined || !Object.hasOwn(classes, name) ? name : classes[name];
}

/** The size that the host's claim asks for where the member's asks for less. None shrinks, here as on any cluster. */
export function wantedSize(claim: PersistentVolumeClaim, there: PersistentVolumeClaim): string | undefined {
  const wanted = claim.spec?.resources?.requests?.[STORAGE];
  const asked = (of: PersistentVolumeClaim): number => parseAmounts(of.spec?.resources?.requests)[STORAGE] ?? 0;
  return asked(claim) > asked(there) ? wanted : undefined;
}

/** Returns the patch of the host's claim that reports the member's. */
export function claimStatus(
  { metadata, spec, status }: Stored<PersistentVolumeClaim>,
  notGrown: string | undefined,
): string {
  const capacity = status?.capacity?.[STORAGE];
  const said: ClaimStatus = {
    uid: metadata.uid,
    phase: status?.phase ?? "Pending",
    ...(capacity === undefined ? {} : { capacity }),
    ...(spec?.volumeName === undefined ? {} : { volumeName: spec.volumeName }),
    ...(notGrown === undefined ? {} : { notGrown }),
  };
  return JSON.stringify(said);
}

const writtenStatus = z.object({ uid: z.string() });
const readStatus = structuredTextReader(writtenStatus);

/**
 * uid of the host's claim that one in a member was made for: as that one says, or, where somebody has taken that off, as the
 * host's claim was told of it; undefined when neither says so.
 */
export function claimOwner(
  there: Stored<PersistentVolumeClaim>,
  claim: Stored<PersistentVolumeClaim> | undefined,
): string | undefined {
  const owner = ownerOf(there)?.uid;
  if (owner !== undefined || claim === undefined) return owner;
  return seenUid(claim) === there.metadata.uid ? claim.metadata.uid : undefined;
}

/** uid of the member's claim that was last seen to stand for the host's. */
export function seenUid({ metadata }: Stored<PersistentVolumeClaim>): string | undefined {
  const status = readStatus(metadata.annotations?.[CLAIM_STATUS_ANNOTATION] ?? "{}");
  return status.ok ? status.value.uid : undefined;
}

/** The annotation by which a member's claim says whose it is. */
export function ownerAnnotation(
  { metadata: { name, namespace = "", uid } }: Stored<PersistentVolumeClaim>,
  host: HostIdentity,
): Record<string, string> {
  const owner: Owner = { cluster: host.name, namespace, name, uid };
  return { [OWNER_ANNOTATION]: JSON.stringify(owner) };
}

/** True when a claim in the member has been seen to stand for the host's. */
export function wasSeen({ metadata }: Stored<PersistentVolumeClaim>): boolean {
  return metadata.annotations?.[CLAIM_STATUS_ANNOTATION] !== undefined;
}
